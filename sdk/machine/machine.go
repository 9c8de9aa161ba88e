// Package machine is how a plugin touches the machine: its files, its programs, its services and its kernel.
//
// The same plugin code prepares the live machine and an image whose root directory is elsewhere. Files work in both;
// what needs something running answers ErrOffline in an image. What an operating system does not have answers
// ErrUnsupported there; nothing pretends to have worked.
package machine

import (
	"errors"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/internal/rooted"
)

var (
	// ErrOffline is the answer of everything that needs a running system when the machine is an image root.
	ErrOffline = errors.New("an image root has nothing running")
	// ErrUnsupported says that this operating system, or the way it was started, has no such thing.
	// errors.Is(err, errors.ErrUnsupported) holds as well.
	ErrUnsupported error = unsupported{}
	// ErrUnsafe is a refusal to write where somebody else could interfere. The error names the directory, what is
	// wrong with it and the command that mends it.
	ErrUnsafe = errors.New("others could interfere here")
	// ErrNotRegular is a refusal to read or replace a device, a pipe or a socket.
	ErrNotRegular = rooted.ErrNotRegular
	// ErrTooLarge is a refusal to read a file beyond the limit.
	ErrTooLarge = errors.New("file too large")
)

type unsupported struct{}

func (unsupported) Error() string { return "not supported on this machine" }

func (unsupported) Is(other error) bool { return other == errors.ErrUnsupported }

// Machine is what a plan function is given. The fields are plain values and interfaces, so that a test can put
// others in their place (package machinetest).
type Machine struct {
	// Target says which machine this is.
	Target target.Target
	// FS is the file system below the root.
	FS *FS
	// Commands runs programs.
	Commands Runner
	// Services is the service manager.
	Services Services
	// Kernel holds parameters and modules.
	Kernel Kernel
	// State is the plugin's private memory between runs.
	State *State
	// Claims takes what the document owns; nil drops it. See Claim.
	Claims func(Claim)

	field   string
	offline bool
}

// Offline reports whether the machine is an image root: nothing runs there, and the kernel is somebody else's.
func (m Machine) Offline() bool { return m.offline }

// New opens the live machine (root is "" or "/"), or the image whose root directory is root. stateDir is the private
// directory of State, "" for none. The function that it returns releases what the machine holds open.
func New(root, stateDir string, t target.Target) (Machine, func() error, error) {
	files, err := OpenFS(root)
	if err != nil {
		return Machine{}, nil, err
	}
	m := Machine{Target: t, FS: files, State: NewState(stateDir)}
	if live(root) {
		m.Commands = NewRunner()
		m.Services = liveServices(m.Commands)
		m.Kernel = liveKernel(m.Commands)
		return m, files.Close, nil
	}
	m.offline = true
	m.Commands = offlineRunner{}
	m.Services = imageServices(files)
	m.Kernel = offlineKernel{}
	return m, files.Close, nil
}

func live(root string) bool { return root == "" || root == "/" }
