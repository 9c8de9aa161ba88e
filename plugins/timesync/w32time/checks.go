package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// policyKey has the values of Group Policy. Each one is used in place of the value of the same name below serviceKey.
const policyKey = `SOFTWARE\Policies\Microsoft\W32Time\`

// checkPolicies refuses values that Group Policy overrides.
func checkPolicies(m sdk.Machine, values []sdk.RegistryValue) error {
	var differ []string
	for _, v := range values {
		key := policyKey + strings.TrimPrefix(v.Key, serviceKey)
		data, err := m.Registry.Value(key, v.Name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case data.String() != v.Data.String():
			differ = append(differ, fmt.Sprintf(`HKLM\%s\%s is %v`, key, v.Name, data))
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return sdk.Needs(sdk.Precondition("Group Policy overrides the document: "+strings.Join(differ, "; "),
		"change the policies of the Windows Time Service or the document, so that they agree; then gpupdate, and run again"), "machine:domain")
}

// checkDomain refuses servers on a member of a domain: Kerberos requires the time of the domain controllers.
func checkDomain(m sdk.Machine, want settings.Settings, force bool) error {
	if force || len(want.Sources) == 0 {
		return nil
	}
	const hint = "remove the sources, so that the machine keeps the time of its domain; or set providerConfig.force"
	domain, err := m.Domain()
	switch {
	case err != nil:
		err = sdk.Precondition(err.Error(), hint)
	case domain != "":
		err = sdk.Final(sdk.Precondition("the machine takes the time from the controllers of its domain "+domain, hint))
	}
	return sdk.At(err, want.Sources[0].Field)
}

// checkOther refuses another time daemon: Windows has nothing like the drop-ins of sdk.Activation that turn one off.
func checkOther(other machine.ServiceState, want settings.Settings) error {
	if !want.DisableOthers || !other.Exists || other.Masked || !other.Enabled && other.Active == "inactive" {
		return nil
	}
	return sdk.Precondition("the service "+otherName+" is another time daemon, and only one can use UDP port 123",
		"uninstall it, or Stop-Service "+otherName+" and Set-Service -StartupType Disabled "+otherName+"; then run again")
}

// withoutTriggers returns the change that removes the triggers of the service, which Windows has by default: outside a domain one
// stops it after every boot, whatever its start type. Source: KB 2385818.
func withoutTriggers(m sdk.Machine) ([]*sdk.Change, error) {
	_, err := m.Registry.Value(serviceKey+`TriggerInfo\0`, "Type")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return []*sdk.Change{{
		ID: "triggers:" + serviceName, Summary: "remove the triggers that start and stop " + serviceName, NeedsLive: true,
		Do: func(ctx context.Context, _ sdk.Progress) error {
			_, err := run(ctx, m, "sc", "triggerinfo", serviceName, "delete")
			return err
		},
	}}, err
}
