package state

import (
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// Sentinel is the file whose presence reports to Cluster API's infrastructure providers that the bootstrap succeeded. Source:
// the bootstrap provider contract, "Sentinel File".
type Sentinel struct{ path string }

// NewSentinel returns the sentinel at path.
func NewSentinel(path string) *Sentinel { return &Sentinel{path: path} }

// Path returns the path of the sentinel.
func (s *Sentinel) Path() string { return s.path }

// Remove removes the sentinel of an earlier success, if any.
func (s *Sentinel) Remove() error { return removeFile(s.path) }

// Write creates the sentinel and its directory, readable by every user.
func (s *Sentinel) Write() error {
	if err := makePublic(filepath.Dir(s.path)); err != nil {
		return err
	}
	return atomicfile.WriteFile(s.path, []byte("success\n"), atomicfile.Options{Mode: 0o644, KeepLabel: true})
}
