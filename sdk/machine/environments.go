package machine

import "fmt"

// Environments is the part of a service manager that stores environment variables for each service, in addition to those
// of the machine. Windows has it; systemd reads variables from files. Every user can read them.
type Environments interface {
	// Environment returns the entries of a service in order, each NAME=VALUE.
	Environment(unit string) ([]string, error)
	// SetEnvironment replaces all entries of a service in one step. They apply from the next start of the service. When it
	// returns without an error, they survive a crash.
	SetEnvironment(unit string, entries []string) error
}

// EnvironmentsOf returns that part of a service manager; ErrUnsupported when it has none.
func EnvironmentsOf(s Services) (Environments, error) {
	if environments, ok := s.(Environments); ok {
		return environments, nil
	}
	return nil, fmt.Errorf("environment variables of a service in the service manager: %w", ErrUnsupported)
}
