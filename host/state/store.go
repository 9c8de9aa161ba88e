// Package state keeps what must outlive the host's process: the lock, the chosen providers, the key of the stream
// digest, the pending run, the private directories of plugins, and the run reports.
//
// State belongs to one machine: Open removes that of another machine-id (a cloned disk image).
package state

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

// nameMax is NAME_MAX of the supported file systems.
const nameMax = 255

// Store is the state directory of one machine. Only a process that holds the lock writes to it.
type Store struct {
	dir      string
	readOnly bool
}

// Open prepares the state directory for this machine and removes the state of another one. With an empty machineID, for a
// temporary directory, the state belongs to no machine.
func Open(dir, machineID string) (*Store, error) {
	s := &Store{dir: dir}
	if err := makePrivate(dir); err != nil {
		return nil, stateError(err)
	}
	if machineID == "" {
		return s, nil
	}
	owner, err := os.ReadFile(filepath.Join(dir, machineFile))
	switch {
	case err == nil && string(owner) == machineID+"\n":
		return s, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, stateError(err)
	}
	if err := s.clear(); err != nil {
		return nil, stateError(err)
	}
	if err := s.write(machineFile, []byte(machineID+"\n")); err != nil {
		return nil, err
	}
	return s, nil
}

// Peek returns a store that is only read, or nil if there is none, if it belongs to another machine, or if this user cannot
// read it.
func Peek(dir, machineID string) *Store {
	owner, err := os.ReadFile(filepath.Join(dir, machineFile))
	if err != nil || machineID == "" || string(owner) != machineID+"\n" {
		return nil
	}
	return &Store{dir: dir, readOnly: true}
}

// clear removes the state of another machine, the machine-id last, so that an interrupted call is repeated. The record of
// writes remains, because a clone has the same leftovers.
func (s *Store) clear() error {
	for _, name := range stateNames() {
		if name == WritesFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(s.dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// Dir returns the state directory.
func (s *Store) Dir() string { return s.dir }

// PluginDir returns the private directory of a plugin for one document, and creates it with mode 0700. A read-only store
// creates none, and returns "" if it is absent.
func (s *Store) PluginDir(binary, kind, name string) (string, error) {
	document := kind + "-" + name
	if len(document) > nameMax { // a name can have 253 bytes
		sum := sha256.Sum256([]byte(document))
		document = kind + "-" + hex.EncodeToString(sum[:])
	}
	dir, prepare := s.dir, makeInner
	if s.readOnly {
		prepare = checkDirectory
	}
	for _, part := range []string{pluginsDir, binary, document} {
		if part != filepath.Base(part) || part == ".." || part == "." {
			return "", stateError(fmt.Errorf("%q is no name for a plugin's directory", part))
		}
		dir = filepath.Join(dir, part)
		err := prepare(dir)
		if s.readOnly && errors.Is(err, fs.ErrNotExist) {
			return "", nil
		}
		if err != nil {
			return "", stateError(err)
		}
	}
	return dir, nil
}

// StreamDigest identifies a stream: half of an HMAC-SHA-256 in hex, under a key that never leaves this directory, so that a
// world-readable report does not help to guess a secret in the stream. A damaged key is replaced, which only changes the digest.
func (s *Store) StreamDigest(stream []byte) (string, error) {
	key, err := os.ReadFile(filepath.Join(s.dir, keyFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", stateError(err)
	}
	if len(key) != sha256.Size {
		key = make([]byte, sha256.Size)
		_, _ = rand.Read(key) // never fails
		if err := s.write(keyFile, key); err != nil {
			return "", err
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(stream)
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

// load reads and parses a file. The result is the zero value and false if it is absent. parse never quotes its input, which
// can be a secret; repair completes the hint "remove it, and ...".
func load[T any](s *Store, name string, parse func([]byte) (T, error), repair string) (T, bool, error) {
	var zero T
	path := filepath.Join(s.dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return zero, false, nil
	}
	if err != nil {
		return zero, false, stateError(err)
	}
	if err := later(path, data, "and "+repair); err != nil {
		return zero, false, stateError(err)
	}
	value, err := parse(data)
	if err != nil {
		return zero, false, stateError(fmt.Errorf("%s is damaged: %w; remove it, and %s", path, err, repair))
	}
	return value, true, nil
}

// stateVersion is the format of every file that has the field version.
const stateVersion = 1

// later returns an error for a file of a later release, whose other fields can mean anything.
func later(path string, data []byte, repair string) error {
	var form struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &form); err != nil || form.Version <= stateVersion {
		return nil //nolint:nilerr // the caller reports what is no JSON
	}
	return fmt.Errorf("%s was written by a later release of machineadm (version %d, and this release reads %d): install that release, or remove the file, %s",
		path, form.Version, stateVersion, repair)
}

// save writes a file as JSON.
func (s *Store) save(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return stateError(err)
	}
	return s.write(name, append(data, '\n'))
}

func (s *Store) write(name string, data []byte) error {
	return writeFile(filepath.Join(s.dir, name), 0o600, data)
}

func writeFile(path string, mode fs.FileMode, data []byte) error {
	return stateError(atomicfile.WriteFile(path, data, atomicfile.Options{Mode: mode, KeepLabel: true}))
}

func (s *Store) remove(name string) error { return stateError(removeFile(filepath.Join(s.dir, name))) }

// removeFile removes a file, if it exists.
func removeFile(path string) error {
	err := os.Remove(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
