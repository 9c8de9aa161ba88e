package machine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// maxStateBytes is far above what a plugin has to remember.
const maxStateBytes = 16 << 20

// State is the private memory of a plugin for one document, for what must outlive a crash: intents, not observations.
// It is a directory that only this user can enter, with files that only this user can read. Secrets may be kept in it
// for as long as they are needed. A State without a directory remembers nothing, and says so when asked to.
type State struct {
	directory string
}

// NewState returns the State in a directory, which is made when something is saved. "" has none.
func NewState(directory string) *State { return &State{directory: directory} }

// Load returns what was saved under a name; fs.ErrNotExist when nothing was.
func (s *State) Load(name string) (data []byte, err error) {
	if err := checkStateName(name); err != nil {
		return nil, err
	}
	if s == nil || s.directory == "" {
		return nil, &fs.PathError{Op: "load state", Path: name, Err: fs.ErrNotExist}
	}
	if err := checkPrivate(s.directory); err != nil {
		return nil, err
	}
	path := filepath.Join(s.directory, name)
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "load state", Path: path, Err: ErrNotRegular}
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	data, err = io.ReadAll(io.LimitReader(file, maxStateBytes+1))
	if err == nil && len(data) > maxStateBytes {
		err = &fs.PathError{Op: "load state", Path: path, Err: ErrTooLarge}
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

// Save keeps data under a name, of letters, digits, dots, dashes and underscores. When it returns without an error,
// the data survives a crash.
func (s *State) Save(name string, data []byte) error {
	if err := checkStateName(name); err != nil {
		return err
	}
	if s == nil || s.directory == "" {
		return &fs.PathError{Op: "save state", Path: name, Err: errors.New("there is no state directory")}
	}
	if len(data) > maxStateBytes {
		return &fs.PathError{Op: "save state", Path: name, Err: ErrTooLarge}
	}
	err := checkPrivate(s.directory)
	if errors.Is(err, fs.ErrNotExist) {
		err = makePrivate(s.directory)
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(filepath.Join(s.directory, name), data, atomicfile.Options{Mode: 0o600})
}

// Delete forgets a name; forgetting what is not there is no error.
func (s *State) Delete(name string) (err error) {
	if err := checkStateName(name); err != nil {
		return err
	}
	if s == nil || s.directory == "" {
		return nil
	}
	err = os.Remove(filepath.Join(s.directory, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDirectory(s.directory)
}

func makePrivate(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	if err := syncDirectory(filepath.Dir(directory)); err != nil {
		return err
	}
	return checkPrivate(directory)
}

func checkStateName(name string) error {
	if !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`).MatchString(name) {
		return fmt.Errorf("state %s: %w: not a state name", printable(name), fs.ErrInvalid)
	}
	return nil
}
