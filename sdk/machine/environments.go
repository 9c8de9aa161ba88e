package machine

import "fmt"

// Environments is the part of a service manager that keeps variables for each service, which the service finds in its
// environment beside those of the machine when it starts. That of Windows does; systemd reads them from files.
//
// What is kept there is for everybody's eyes.
type Environments interface {
	// Environment returns the entries of a service, each as in NAME=VALUE, in their order; none when it has no variables
	// of its own.
	Environment(unit string) ([]string, error)
	// SetEnvironment replaces all entries of a service in one step; none takes its variables away. A running service
	// keeps the environment that it was started with. When it returns without an error, the entries survive a crash.
	SetEnvironment(unit string, entries []string) error
}

// EnvironmentsOf returns that part of a service manager; ErrUnsupported when it has none.
func EnvironmentsOf(s Services) (Environments, error) {
	if environments, ok := s.(Environments); ok {
		return environments, nil
	}
	return nil, fmt.Errorf("variables that the service manager keeps for a service: %w", ErrUnsupported)
}
