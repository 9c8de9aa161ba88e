//go:build unix

package cli

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/host/journal"
	"github.com/machineadm/machineadm/internal/rooted"
	"github.com/machineadm/machineadm/internal/trust"
)

// defaultsFile is where the OS vendor names a provider for each kind.
const defaultsFile = "/etc/machineadm/defaults.yaml"

func defaultStateDir() string { return "/var/lib/machineadm" }

func defaultRunDir() string { return "/run/machineadm" }

// imageLock is the image's own directory: two runs on one image exclude each other, and the image gains no file.
func imageLock(root, _ string) string { return root }

// machineID binds state to a machine; an image has none.
func machineID(root string) string {
	if root != "" {
		return ""
	}
	data, err := os.ReadFile("/etc/machine-id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

func bootID(root string) string {
	if root != "" {
		return ""
	}
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// openStream opens the stream. What root reads must be trusted: others could swap it under the run.
func openStream(path string) (*os.File, error) {
	if privileged() {
		return trust.Open(path, trust.Stream())
	}
	return regular(os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)) // non-blocking: a FIFO has no writer yet
}

// privileged says whether this process can do what other users cannot.
func privileged() bool { return os.Geteuid() == 0 }

// checkTemporary is the path without links of a directory in which a private one is safe from other users.
func checkTemporary(dir string) (string, error) { return trust.Directory(dir, true) }

// moreTempDirs are where everybody, or at least this user, can make directories when TMPDIR is of no use.
func moreTempDirs() []string {
	return []string{"/tmp", "/var/tmp", "/run/user/" + strconv.Itoa(os.Geteuid()), "/dev/shm", "/run"}
}

// ownerLock is what the owner of a temporary directory locks: the directory itself, which stays empty.
func ownerLock(dir string) string { return dir }

// mine reports whether a file belongs to this user.
func mine(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func newSentinel() *journal.Sentinel {
	return journal.NewSentinel("/run/cluster-api/bootstrap-success.complete")
}

// regular opens a file that is one: a FIFO or a device would hold the run up.
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
