package daemon

import (
	"cmp"
	"context"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// Find claims the clock of the machine for a document and returns the daemon of a provider, and the command of its service.
// Two documents that differ conflict: each would change the daemon in every run.
func Find(ctx context.Context, m sdk.Machine, doc v1alpha1.Timesync, packages string, names ...string) (Daemon, []string, error) {
	if err := sdk.ClaimSpec(m, "clock:system", doc.Spec); err != nil {
		return Daemon{}, nil, err
	}
	states, err := Query(ctx, m)
	if err != nil {
		return Daemon{}, nil, err
	}
	unit, state := states.Installed(names...)
	if state.Exists {
		return Daemon{Unit: unit, States: states}, state.Command, nil
	}
	hint := "install the package " + packages
	if other, provider := states.alternative(); provider != "" {
		hint += ", or set spec.provider: " + provider + " for " + other + ", which is installed"
	}
	return Daemon{}, nil, sdk.Precondition(unit+" is not installed", hint+"; then run again")
}

// alternative returns a service of another provider that is installed, if possible one that runs, and that provider.
func (s States) alternative() (unit, provider string) {
	providers := map[string]string{
		"systemd-timesyncd.service": "systemd", "chrony.service": "chronyd", "chronyd.service": "chronyd",
		"ntpsec.service": "ntpd", "ntp.service": "ntpd", "ntpd.service": "ntpd",
	}
	for _, name := range Units() {
		state := s[name]
		if providers[name] != "" && state.Exists && !state.Masked && (provider == "" || state.Active == "active") {
			unit, provider = cmp.Or(state.ID, name), providers[name]
		}
	}
	return unit, provider
}
