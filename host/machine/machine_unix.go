//go:build unix

package machine

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/rooted"
	"github.com/machineadm/machineadm/internal/trust"
)

// DefaultsFile is the OS vendor's choice of a provider for each kind.
const DefaultsFile = "/etc/machineadm/defaults.yaml"

// StateDir returns the directory of state that outlives a run.
func StateDir() string { return "/var/lib/machineadm" }

// RunDir returns the directory of the report and the lock.
func RunDir() string { return "/run/machineadm" }

// imageLock returns the lock of an image: its directory itself, so that the image gets no lock file.
func imageLock(root, _ string) string { return root }

// ID binds state to a machine; an image has none.
func ID(root string) string {
	if root != "" {
		return ""
	}
	data, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// BootID returns the ID of the running boot; an image has none.
func BootID(root string) string {
	if root != "" {
		return ""
	}
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// OpenStream opens the stream. For root the file must be trusted, because others could replace it.
func OpenStream(path string) (*os.File, error) {
	if privileged() {
		return trust.Open(path, trust.Stream())
	}
	return regular(os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)) // non-blocking for a FIFO without a writer
}

// privileged reports whether this process runs as root.
func privileged() bool { return os.Geteuid() == 0 }

// checkTemporary checks a parent of private directories, and returns its path without links.
func checkTemporary(dir string) (string, error) { return trust.Directory(dir, true) }

// moreTempDirs returns alternatives to TMPDIR.
func moreTempDirs() []string {
	return []string{"/tmp", "/var/tmp", "/run/user/" + strconv.Itoa(os.Geteuid()), "/dev/shm", "/run"}
}

// ownerLock returns the lock of a temporary directory: the directory itself.
func ownerLock(dir string) string { return dir }

// mine reports whether a file belongs to this user.
func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

// NewSentinel returns the file that says to Cluster API that the bootstrap succeeded.
func NewSentinel() *state.Sentinel {
	return state.NewSentinel("/run/cluster-api/bootstrap-success.complete")
}

// regular refuses a file that is not regular: a FIFO or a device could block the run.
func regular(file *os.File, err error) (*os.File, error) {
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = rooted.ErrNotRegular
		if info.IsDir() {
			err = trust.ErrDirectory
		}
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}
