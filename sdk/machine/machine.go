// Package machine gives a plugin access to the machine: its files, programs, services and kernel.
//
// The same plugin code prepares the live machine and an image below another root directory. Files work in both. What needs
// a running system returns ErrOffline in an image, and what the operating system does not have returns ErrUnsupported.
package machine

import "github.com/machineadm/machineadm/contract/target"

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
	// Registry is the registry of Windows.
	Registry Registry
	// Domain returns the Windows domain that the machine is a member of, empty for a workgroup. On other operating systems,
	// and in an image, it returns ErrUnsupported.
	Domain func() (string, error)
	// State is the plugin's private storage between runs.
	State *State
	// Claims receives the claims of the document; nil discards them. See Claim.
	Claims func(Claim)

	field   string
	offline bool
}

// Offline reports whether the machine is an image root. Nothing runs there, and the kernel is not its own.
func (m Machine) Offline() bool { return m.offline }

// Claim records that the document owns id with this desired value; no value means absent. The host refuses two documents of
// a stream that claim one ID with different values before it changes anything, so a plan function also claims what already
// matches. The helpers of package sdk claim what they manage.
//
// An ID names one attribute or part that the document owns: "sysctl:net.core.somaxconn", "file:/etc/motd",
// "file:/etc/hosts#node", "unit:chrony.service#running". Paths and the names of units and registry values in it are
// normalised. Section 7 of contract/SPEC.md defines the values. An empty field means that of Field.
func (m Machine) Claim(id, field string, value ...string) {
	m.claim(Claim{ID: id, Field: field, Value: value})
}

// Assume is Claim for a value that the document does not ask for: what the machine gets as long as the field is not set, such as the
// default of a program, or what a program sets when it starts. Where another document claims another value, the host warns at this field.
func (m Machine) Assume(id, field string, value ...string) {
	m.claim(Claim{ID: id, Field: field, Value: value, Assumed: true})
}

func (m Machine) claim(c Claim) {
	if m.Claims == nil {
		return
	}
	c.ID = canonicalID(m.Target.OS, c.ID)
	if c.Field == "" {
		c.Field = m.field
	}
	m.Claims(c)
}

// Field returns the same machine with a field path for its claims, so that a conflict is reported at this field.
func (m Machine) Field(field string) Machine {
	m.field = field
	return m
}

// FieldPath returns the field path of Field.
func (m Machine) FieldPath() string { return m.field }

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
		m.Services, m.Registry, m.Domain = imageServices(files, t.Init), unavailable{ErrUnsupported}, unavailable{ErrUnsupported}.domain
	} else {
		m.Commands = NewRunner()
		m.Services, m.Kernel, m.Registry = liveServices(m.Commands), liveKernel(m.Commands), liveRegistry()
		m.Domain = liveDomain
	}
	return m, files.Close, nil
}
