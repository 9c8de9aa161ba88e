package state

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Resolved keeps what documents stand for until a run succeeds: streams, and so possibly secrets. It implements run.Resolved.
type Resolved struct{ store *Store }

// Resolved returns what is kept of resolved documents.
func (s *Store) Resolved() Resolved { return Resolved{s} }

// path returns the file of a key, which is a digest in hexadecimal.
func (r Resolved) path(key string) (string, error) {
	if _, err := hex.DecodeString(key); err != nil || key == "" {
		return "", stateError(fmt.Errorf("%q is no key of a resolved document", key))
	}
	return filepath.Join(r.store.dir, resolvedDir, key), nil
}

// Load returns what was kept under a key, nil for nothing.
func (r Resolved) Load(key string) ([]byte, error) {
	path, err := r.path(key)
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, stateError(err)
}

// Keep saves it durably, readable by this user only.
func (r Resolved) Keep(key string, data []byte) error {
	path, err := r.path(key)
	if err != nil {
		return err
	}
	if err := makeInner(filepath.Dir(path)); err != nil {
		return stateError(err)
	}
	return writeFile(path, 0o600, data)
}

// Forget removes all of it.
func (r Resolved) Forget() error {
	return stateError(os.RemoveAll(filepath.Join(r.store.dir, resolvedDir)))
}
