package cli

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/internal/trust"
)

// defaultsFile is where the OS vendor names a provider for each kind.
const defaultsFile = `C:\ProgramData\machineadm\defaults.yaml`

func defaultStateDir() string { return `C:\ProgramData\machineadm` }

func defaultRunDir() string { return `C:\ProgramData\machineadm\run` }

// imageLock is a file: Windows locks no directories.
func imageLock(_, runDir string) string { return filepath.Join(runDir, "lock") }

// machineID binds state to a machine; an image has none.
func machineID(root string) string {
	if root != "" {
		return ""
	}
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, `SOFTWARE\Microsoft\Cryptography`, registry.QUERY_VALUE)
	if err != nil {
		return ""
	}
	defer func() { _ = key.Close() }() // only read from
	id, _, err := key.GetStringValue("MachineGuid")
	if err != nil {
		return ""
	}
	return id
}

// openStream opens the stream, judged like a plugin.
func openStream(path string) (*os.File, error) { return trust.Open(path, trust.Stream()) }

// privileged says whether this process can do what other users cannot.
func privileged() bool { return windows.GetCurrentProcessToken().IsElevated() }

// checkTemporary has nothing to check: the directory is this user's own, and plugins are reached by mutual TLS.
func checkTemporary(dir string) (string, error) { return dir, nil }

// moreTempDirs is empty: Windows gives every user a directory of his own.
func moreTempDirs() []string { return nil }

// ownerLock is what the owner of a temporary directory locks: a file beside it, since Windows locks no directories.
func ownerLock(dir string) string { return dir + ".lock" }

// mine is true: the directory for temporary files is this user's.
func mine(os.FileInfo) bool { return true }

func newSentinel() *journal.Sentinel {
	return journal.NewSentinel(`C:\run\cluster-api\bootstrap-success.complete`)
}
