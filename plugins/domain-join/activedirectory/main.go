// Command machineadm-domain-join-plugin-activedirectory serves DomainJoin documents: it makes the machine a member of an Active
// Directory domain, or ends its membership.
package main

import (
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Plugin{
		Name:    "activedirectory",
		Version: version.String(),
		OS:      []string{"linux", "windows"},
		Kinds: []sdk.Kind{
			sdk.For(v1alpha1.APIVersion, v1alpha1.KindDomainJoin, sdk.PhaseProvisioning, plan).Validate(settings.Validate).Provides("machine:domain"),
		},
	})
}
