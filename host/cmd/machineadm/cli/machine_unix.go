//go:build unix

package cli

import (
	"os"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"

	"github.com/machineadm/machineadm/host/journal"
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
	if os.Geteuid() != 0 {
		return os.Open(path)
	}
	return trust.Open(path, trust.Stream())
}

// readInRoot reads a file of the machine, or of the image with links resolved inside it.
func readInRoot(root, path string) ([]byte, error) {
	if root != "" {
		inside, err := securejoin.SecureJoin(root, path)
		if err != nil {
			return nil, err
		}
		return os.ReadFile(inside)
	}
	file, err := openStream(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // only read from
	return readAll(file)
}

func newSentinel() *journal.Sentinel {
	return journal.NewSentinel("/run/cluster-api/bootstrap-success.complete")
}
