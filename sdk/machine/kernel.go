package machine

import "context"

// ModuleState says how far away a feature of the kernel is.
type ModuleState int

// The states, in the order in which a module comes nearer.
const (
	// ModuleAbsent: this kernel has no such module.
	ModuleAbsent ModuleState = iota
	// ModuleLoadable: it is installed for this kernel, but not loaded.
	ModuleLoadable
	// ModuleLoaded: it is loaded.
	ModuleLoaded
	// ModuleBuiltIn: it is part of the kernel, and needs no loading.
	ModuleBuiltIn
)

// String names the state for people.
func (s ModuleState) String() string {
	switch s {
	case ModuleAbsent:
		return "absent"
	case ModuleLoadable:
		return "loadable"
	case ModuleLoaded:
		return "loaded"
	case ModuleBuiltIn:
		return "built in"
	default:
		return "unknown"
	}
}

// Kernel holds the parameters of /proc/sys and the modules of the running kernel. In an image everything is
// ErrOffline, elsewhere than on Linux ErrUnsupported.
type Kernel interface {
	// Parameter reads a parameter. The key is a path below /proc/sys, as in "net/ipv4/ip_forward". The value is as
	// the kernel prints it, without the line feed at its end. fs.ErrNotExist when this kernel has no such parameter.
	Parameter(key string) (string, error)
	// SetParameter writes a parameter. A value that the kernel refuses is an error that holds its errno
	// (errors.As with syscall.Errno) and not the value.
	SetParameter(key, value string) error
	// Module says how a module stands. Dashes and underscores in the name are the same; aliases are not known.
	Module(name string) (ModuleState, error)
	// LoadModule loads a module and what it depends on. One that is there already is no error.
	LoadModule(ctx context.Context, name string) error
}
