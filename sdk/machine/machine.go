// Package machine gives a plugin access to the machine: its files, programs, services and kernel.
//
// The same plugin code prepares the live machine and an image below another root directory. Files work in both. What needs
// a running system returns ErrOffline in an image, and what the operating system does not have returns ErrUnsupported.
package machine

import (
	"errors"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/internal/rooted"
)

var (
	// ErrOffline reports that the machine is an image root and the operation needs a running system.
	ErrOffline = errors.New("an image root has nothing running")
	// ErrUnsupported reports that this operating system, or its init system, lacks the operation.
	// errors.Is(err, errors.ErrUnsupported) holds as well.
	ErrUnsupported error = unsupported{}
	// ErrUnsafe reports a directory in which other users could interfere with a write. The error names the directory, what
	// is wrong with it and how to fix it.
	ErrUnsafe = errors.New("others could interfere here")
	// ErrNotRegular reports a device, a pipe or a socket where a regular file is read or replaced.
	ErrNotRegular = rooted.ErrNotRegular
	// ErrTooLarge reports a file that is larger than the limit.
	ErrTooLarge = errors.New("file too large")
)

type unsupported struct{}

func (unsupported) Error() string { return "not supported on this machine" }

func (unsupported) Is(other error) bool { return other == errors.ErrUnsupported }

// Machine is the machine that a plan function works on. Tests replace its fields, see package machinetest.
type Machine struct {
	// Target identifies the machine.
	Target target.Target
	// FS is the file system below the root.
	FS *FS
	// Commands runs programs.
	Commands Runner
	// Services is the service manager.
	Services Services
	// Kernel holds parameters and modules.
	Kernel Kernel
	// State is the plugin's private storage between runs.
	State *State
	// Claims receives the claims of the document; nil discards them. See Claim.
	Claims func(Claim)

	field   string
	offline bool
}

// Offline reports whether the machine is an image root. Nothing runs there, and the kernel is not its own.
func (m Machine) Offline() bool { return m.offline }

// New opens the live machine (root is "" or "/"), or the image whose root directory is root. stateDir is the directory of
// State, "" for none. The returned function closes the machine.
func New(root, stateDir string, t target.Target) (Machine, func() error, error) {
	files, err := OpenFS(root)
	if err != nil {
		return Machine{}, nil, err
	}
	m := Machine{Target: t, FS: files, State: NewState(stateDir), offline: !live(root)}
	if m.offline {
		m.Commands, m.Kernel = unavailable{ErrOffline}, unavailable{ErrOffline}
		m.Services = imageServices(files)
	} else {
		m.Commands = NewRunner()
		m.Services, m.Kernel = liveServices(m.Commands), liveKernel(m.Commands)
	}
	return m, files.Close, nil
}

func live(root string) bool { return root == "" || root == "/" }
