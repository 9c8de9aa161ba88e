package machine

import "context"

// ModuleState is the state of a kernel module.
type ModuleState int

// The states of a module.
const (
	ModuleAbsent   ModuleState = iota // this kernel has no such module
	ModuleLoadable                    // installed for this kernel, but not loaded
	ModuleLoaded
	ModuleBuiltIn // part of the kernel
)

// String returns the state in words.
func (s ModuleState) String() string {
	names := []string{"absent", "loadable", "loaded", "built in"}
	if s < 0 || int(s) >= len(names) {
		return "unknown"
	}
	return names[s]
}

// Kernel holds the parameters of /proc/sys and the modules of the running kernel. In an image every method returns
// ErrOffline, on operating systems other than Linux ErrUnsupported.
type Kernel interface {
	// Parameter reads a parameter. The key is a path below /proc/sys, such as "net/ipv4/ip_forward". The value is what
	// the kernel prints, without the final line feed. fs.ErrNotExist when this kernel has no such parameter.
	Parameter(key string) (string, error)
	// SetParameter writes a parameter. If the kernel refuses the value, the error has its errno (errors.As with
	// syscall.Errno) and not the value.
	SetParameter(key, value string) error
	// Module returns the state of a module. Dashes and underscores in the name are equal; aliases are not resolved.
	Module(name string) (ModuleState, error)
	// LoadModule loads a module and its dependencies, unless it is loaded or built in.
	LoadModule(ctx context.Context, name string) error
}
