package controller

import (
	"fmt"
	"strings"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// unfinished says which Machines are not running yet, by the conditions of their configs.
type unfinished struct {
	running, want int
	configs       []bootstrap.MachineBootstrapConfig
}

func (u *unfinished) Error() string {
	var b strings.Builder
	_, _ = fmt.Fprintf(&b, "%d of %d Machines are running", u.running, u.want)
	for i := range u.configs {
		_, _ = fmt.Fprintf(&b, "\n%s: %s", u.configs[i].Name, u.configs[i].Status.DataSecretName)
		for _, c := range u.configs[i].Status.Conditions {
			_, _ = fmt.Fprintf(&b, "\n  %s=%s %s %s", c.Type, c.Status, c.Reason, c.Message)
		}
	}
	return b.String()
}
