package machine

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/trust"
)

// DefaultsFile is the OS vendor's choice of a provider for each kind.
const DefaultsFile = `C:\ProgramData\machineadm\defaults.yaml`

// StateDir returns the directory of state that outlives a run.
func StateDir() string { return `C:\ProgramData\machineadm` }

// RunDir returns the directory of the report and the lock.
func RunDir() string { return `C:\ProgramData\machineadm\run` }

// imageLock returns the lock of an image: a file, because Windows cannot lock directories.
func imageLock(_, runDir string) string { return filepath.Join(runDir, "lock") }

// ID binds state to a machine; an image has none.
func ID(root string) string {
	if root != "" {
		return ""
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer func() { _ = key.Close() }() // opened for reading only
	id, _, err := key.GetStringValue("MachineGuid")
	if err != nil {
		return ""
	}
	return id
}

// OpenStream opens the stream, which must be trusted.
func OpenStream(path string) (*os.File, error) { return trust.Open(path, trust.Stream()) }

// privileged reports whether this process is elevated.
func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

// checkTemporary accepts dir: it belongs to this user, and plugins are connected by mutual TLS.
func checkTemporary(dir string) (string, error) { return dir, nil }

// moreTempDirs returns none: on Windows every user has a private directory.
func moreTempDirs() []string { return nil }

// ownerLock returns the lock of a temporary directory: a file beside it, because Windows cannot lock directories.
func ownerLock(dir string) string { return dir + ".lock" }

// mine returns true, because the directory for temporary files belongs to this user.
func mine(os.FileInfo) bool { return true }

// NewSentinel returns the file that says to Cluster API that the bootstrap succeeded.
func NewSentinel() *state.Sentinel {
	return state.NewSentinel(`C:\run\cluster-api\bootstrap-success.complete`)
}
