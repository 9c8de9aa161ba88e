// Package daemon makes a time daemon run with the configuration that a provider rendered, as the only one of the machine,
// and waits until it has synchronized the clock.
package daemon

import (
	"cmp"
	"context"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Units returns the services of every time daemon that the distributions have. Two of them are often names of one service.
// chronyd-restricted.service is a second service of chronyd, which the presets of Debian 13 enable.
func Units() []string {
	return []string{
		"systemd-timesyncd.service", "chrony.service", "chronyd.service", "chronyd-restricted.service", "ntpsec.service",
		"ntp.service", "ntpd.service", "openntpd.service", "ntpd-rs.service",
	}
}

// States are the services of time daemons, by the names in the query.
type States map[string]machine.ServiceState

// Query asks for these services at once, by default for those in Units.
func Query(ctx context.Context, m sdk.Machine, names ...string) (States, error) {
	if len(names) == 0 {
		names = Units()
	}
	all, err := m.Services.States(ctx, names...)
	if err != nil {
		return nil, err
	}
	states := States{}
	for i, name := range names {
		states[name] = all[i]
	}
	return states, nil
}

// Installed returns the own name of the first of these services that is installed, and its state. When none is, the name is
// the first.
func (s States) Installed(names ...string) (string, machine.ServiceState) {
	for _, name := range names {
		if state := s[name]; state.Exists {
			return cmp.Or(state.ID, name), state
		}
	}
	return names[0], s[names[0]]
}

// Fit returns how well a provider with one of these services fits the machine.
func Fit(ctx context.Context, m sdk.Machine, names ...string) (sdk.Fitness, string, error) {
	states, err := Query(ctx, m, names...)
	if err != nil {
		return sdk.FitnessUnsupported, "", err
	}
	unit, state := states.Installed(names...)
	switch {
	case !state.Exists:
		return sdk.FitnessAbsent, strings.Join(names, ", ") + " is not installed", nil
	case state.Active == "active" || m.Offline() && state.Enabled:
		return sdk.FitnessActive, unit + " is the time daemon of this machine", nil
	}
	return sdk.FitnessInstalled, unit + " is installed", nil
}
