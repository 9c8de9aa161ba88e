package machinetest

import (
	"slices"

	"github.com/machineadm/machineadm/sdk/machine"
)

// WindowsServices are Services that store variables for each service, as Windows does. The key in Failures is
// "set-environment UNIT".
type WindowsServices struct {
	*Services
	environments map[string][]string
}

// NewWindowsServices returns a manager without units.
func NewWindowsServices() *WindowsServices {
	return &WindowsServices{Services: NewServices(), environments: map[string][]string{}}
}

// Environment implements machine.Environments.
func (s *WindowsServices) Environment(unit string) ([]string, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.environments[full(unit)]), nil
}

// SetEnvironment implements machine.Environments.
func (s *WindowsServices) SetEnvironment(unit string, entries []string) error {
	return s.change("set-environment", unit, func(*machine.ServiceState) {
		s.environments[full(unit)] = slices.Clone(entries)
	})
}
