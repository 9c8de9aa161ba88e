package ready

import (
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

const runAgain = ", then run again"

// checker collects what is missing.
type checker struct {
	m       sdk.Machine
	s       settings.Settings
	missing []sdk.Violation
	// comes is what is not there yet, and comes without a document, such as a service of the boot.
	comes string
	// images are the directories of the container runtime, if it answers and says where they are.
	images []string
	// warnings are of what may make it fail.
	warnings []sdk.Warning
}

func (c *checker) miss(field, message, hint string) { c.need("", field, message, hint) }

// need is miss for what another document claims.
func (c *checker) need(claim, field, message, hint string) {
	c.missing = append(c.missing, sdk.Violation{Field: field, Message: message, Hint: hint, Needs: claim})
}

func (c *checker) warn(field, message string) {
	c.warnings = append(c.warnings, sdk.Warning{Field: field, Message: message})
}
