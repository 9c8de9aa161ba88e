package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Sentinel is the file that Cluster API's infrastructure providers look for: its presence says that the bootstrap
// succeeded. Source: the bootstrap provider contract, "Sentinel File".
type Sentinel struct{ path string }

// NewSentinel is the sentinel at path.
func NewSentinel(path string) *Sentinel { return &Sentinel{path: path} }

// Path is where the sentinel is.
func (s *Sentinel) Path() string { return s.path }

// Remove takes the sentinel of an earlier success away. Absent is fine.
func (s *Sentinel) Remove() error {
	err := os.Remove(s.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Write says that the bootstrap succeeded. Its directory is made, for everyone to look into.
func (s *Sentinel) Write() error {
	if err := public(filepath.Dir(s.path)); err != nil {
		return err
	}
	return atomicfile.WriteFile(s.path, []byte("success\n"), atomicfile.Options{Mode: 0o644, KeepLabel: true})
}
