// Package state keeps what must outlive the host's process: the lock, the choice of providers, the key of the
// generation digest, the run that waits for a reboot, the private directories of plugins, and the run reports.
//
// State is bound to the machine: on a machine with another machine-id (a cloned disk image) all of it is void.
package state

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/internal/atomicfile"
)

const (
	machineFile = "machine-id"
	keyFile     = "generation.key"
	reportsDir  = "reports"
	pluginsDir  = "plugins"
	keptReports = 20
	nameMax     = 255 // NAME_MAX of every file system that matters here
)

// DigestsFile is the cache of plugin digests; see launch.Digests.
const DigestsFile = "digests.json"

// ErrState says that state could not be read or written. The run must not go on as if it had been.
var ErrState = errors.New("the state cannot be kept")

// Store is the state directory of one machine. Only a process that holds the lock writes to it.
type Store struct {
	dir  string
	peek bool // nothing is made
}

// Open makes the state directory ready for this machine. State of another machine is removed: on a clone, what was
// chosen and counted for the original is void. An empty machineID binds nothing (a temporary directory).
func Open(dir, machineID string) (*Store, error) {
	s := &Store{dir: dir}
	if err := private(dir); err != nil {
		return nil, stateError(err)
	}
	if machineID == "" {
		return s, nil
	}
	bound, err := os.ReadFile(filepath.Join(dir, machineFile))
	switch {
	case err == nil && string(bound) == machineID+"\n":
		return s, nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, stateError(err)
	}
	if err := s.void(); err != nil {
		return nil, stateError(err)
	}
	if err := s.write(machineFile, []byte(machineID+"\n")); err != nil {
		return nil, err
	}
	return s, nil
}

// stateNames are all the names that this package makes in a state directory.
func stateNames() []string {
	return []string{
		choicesFile, keyFile, rebootsFile, PendingFile, RestingFile, DigestsFile, pluginsDir, reportsDir, machineFile, WritesFile,
	}
}

// void removes what is bound to another machine, the mark that says so last: a run that is killed here begins again.
// Only names that this package makes are touched. The record of writes stays: the clone has the same leftovers.
func (s *Store) void() error {
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

// Dir is the state directory.
func (s *Store) Dir() string { return s.dir }

// PluginDir is the private directory of a plugin for one document. It exists afterwards, with mode 0700; from Peek it is
// empty when there is none.
func (s *Store) PluginDir(binary, kind, name string) (string, error) {
	document := kind + "-" + name
	if len(document) > nameMax { // a name alone may have 253 bytes
		sum := sha256.Sum256([]byte(document))
		document = kind + "-" + hex.EncodeToString(sum[:])
	}
	dir := s.dir
	if s.peek {
		return existing(filepath.Join(dir, pluginsDir, filepath.Base(binary), filepath.Base(document)))
	}
	for _, part := range []string{pluginsDir, binary, document} {
		if part != filepath.Base(part) || part == ".." || part == "." {
			return "", stateError(errors.New("a plugin's directory cannot bear this name"))
		}
		dir = filepath.Join(dir, part)
		if err := inner(dir); err != nil {
			return "", stateError(err)
		}
	}
	return dir, nil
}

// existing is a directory that is there, or nothing.
func existing(dir string) (string, error) {
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", stateError(err)
	case !info.IsDir():
		return "", stateError(fmt.Errorf("%s is not a directory: remove it", dir))
	}
	return dir, nil
}

// Generation names a stream: half of an HMAC-SHA-256 under a key that never leaves this directory, in hex, so that a
// report that everyone reads tells nothing about a short secret in the stream. A damaged key is replaced: all that is
// lost is that the same stream gets another name.
func (s *Store) Generation(stream []byte) (string, error) {
	path := filepath.Join(s.dir, keyFile)
	key, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", stateError(err)
	}
	if len(key) != sha256.Size {
		key = make([]byte, sha256.Size)
		if _, err := rand.Read(key); err != nil {
			return "", fmt.Errorf("make a key: %w", err)
		}
		if err := s.write(keyFile, key); err != nil {
			return "", err
		}
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(stream)
	return hex.EncodeToString(mac.Sum(nil)[:16]), nil
}

func (s *Store) write(name string, data []byte) error {
	return stateError(atomicfile.WriteFile(filepath.Join(s.dir, name), data, atomicfile.Options{Mode: 0o600, KeepLabel: true}))
}

func stateError(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", ErrState, err)
}

// Peek is the store of a run that writes nothing: nil when there is none, when it is another machine's, or when
// this user may not look into it.
func Peek(dir, machineID string) *Store {
	bound, err := os.ReadFile(filepath.Join(dir, machineFile))
	if err != nil || machineID == "" || string(bound) != machineID+"\n" {
		return nil
	}
	return &Store{dir: dir, peek: true}
}
