package machinetest

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Fixture is a fake machine.
type Fixture struct {
	// Machine is the parameter of the code under test.
	Machine machine.Machine
	// Root is the root directory of its files.
	Root     string
	Commands *Runner
	Kernel   *Kernel
	Services *Services
	Registry *Registry
	// Live describes for Crash what else a plan changes, such as the configuration that a daemon has read; nil: nothing.
	Live func() string
	// Domain is the Windows domain that the machine is a member of, empty for none.
	Domain string

	stateDirectory string
	mutex          sync.Mutex
	claims         []machine.Claim
}

// Claims returns the claims so far, in order.
func (f *Fixture) Claims() []machine.Claim {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return slices.Clone(f.claims)
}

func (f *Fixture) claim(c machine.Claim) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.claims = append(f.claims, c)
}

// New returns a live machine with files in a temporary directory and with scripted programs, services and kernel,
// and with an empty registry.
func New(t testing.TB) *Fixture {
	t.Helper()
	f := &Fixture{Root: Root(t), Commands: NewRunner(t), Kernel: NewKernel(nil), Services: NewServices(), Registry: NewRegistry()}
	f.stateDirectory = filepath.Join(t.TempDir(), "state")
	files, err := machine.OpenFS(f.Root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := files.Close(); err != nil {
			t.Error(err)
		}
	})
	f.Machine = machine.Machine{
		Target: Target(), FS: files, Commands: f.Commands, Services: f.Services, Kernel: f.Kernel, Registry: f.Registry,
		Domain: func() (string, error) { return f.Domain, nil },
		State:  machine.NewState(f.stateDirectory), Claims: f.claim,
	}
	return f
}

// NewImage returns a real image root in a temporary directory.
func NewImage(t testing.TB) (machine.Machine, string) {
	t.Helper()
	root := Root(t)
	m, closeMachine, err := machine.New(root, filepath.Join(t.TempDir(), "state"), Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := closeMachine(); err != nil {
			t.Error(err)
		}
	})
	return m, root
}

// Root returns a temporary directory with mode 0755, whatever the umask.
func Root(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

// Target is a Debian 12 machine on Linux; a machine of this operating system elsewhere.
func Target() target.Target {
	if runtime.GOOS != "linux" {
		return target.Target{OS: runtime.GOOS, Architecture: runtime.GOARCH, Distribution: runtime.GOOS}
	}
	return target.Target{
		OS: "linux", Architecture: runtime.GOARCH, Distribution: "debian", Version: "12",
		Name: "Debian GNU/Linux 12 (bookworm)", Kernel: "6.1.0-test", Hostname: "node", Init: "systemd",
	}
}

// WriteFiles writes files, by path, each with mode 0644.
func (f *Fixture) WriteFiles(t testing.TB, files map[string]string) {
	t.Helper()
	for name, contents := range files {
		if err := f.Machine.FS.WriteFile(name, []byte(contents), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
