package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// State is the private storage of a plugin for one document, for what must survive a crash: intents, not observations. It
// is a directory of this user with mode 0700, and its files have mode 0600. Secrets may stay in it as long as they are
// needed. A State without a directory is empty, and Save fails.
type State struct {
	directory string
	before    func()
}

// Before returns the same State, which calls a function ahead of each change. Tests end a plugin there, see
// machinetest.Crash.
func (s *State) Before(change func()) *State { return &State{s.directory, change} }

// NewState returns the State in a directory, which the first Save creates. "" means none.
func NewState(directory string) *State { return &State{directory: directory} }

// open checks a name and opens the directory; without one the error is fs.ErrNotExist.
func (s *State) open(op, name string) (*FS, error) {
	switch {
	case !regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`).MatchString(name):
		return nil, fmt.Errorf("state %s: %w: not a state name", printable(name), fs.ErrInvalid)
	case s == nil || s.directory == "":
		return nil, &fs.PathError{Op: op + " state", Path: name, Err: fmt.Errorf("no state directory: %w", fs.ErrNotExist)}
	}
	if err := checkPrivate(s.directory); err != nil {
		return nil, err
	}
	files, err := OpenFS(s.directory)
	if err != nil {
		return nil, err
	}
	return files.Before(s.before), nil
}

// Load returns the data saved under a name; fs.ErrNotExist when there is none.
func (s *State) Load(name string) ([]byte, error) {
	files, err := s.open("load", name)
	if err != nil {
		return nil, err
	}
	data, err := files.ReadFile("/" + name)
	return data, closed(files, err)
}

// Save stores data under a name of letters, digits, dots, dashes and underscores. When it returns without an error, the
// data survives a crash.
func (s *State) Save(name string, data []byte) error {
	if len(data) > MaxFileBytes {
		return &fs.PathError{Op: "save state", Path: name, Err: ErrTooLarge}
	}
	files, err := s.open("save", name)
	if errors.Is(err, fs.ErrNotExist) && s != nil && s.directory != "" {
		if err := createPrivate(s.directory); err != nil {
			return err
		}
		files, err = s.open("save", name)
	}
	if err != nil {
		return err
	}
	return closed(files, files.WriteFile("/"+name, data, 0o600))
}

// Path returns the file of a saved name as this process sees it, for a program that reads it.
func (s *State) Path(name string) string { return filepath.Join(s.directory, name) }

// Delete removes a name; an absent one is no error.
func (s *State) Delete(name string) error {
	files, err := s.open("delete", name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return closed(files, files.Remove("/"+name))
}

func createPrivate(directory string) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	return syncDirectory(filepath.Dir(directory))
}
