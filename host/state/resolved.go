package state

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Resolved keeps the streams of references until a run succeeds, and so possibly secrets. It implements run.Resolved.
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

// Only removes what is kept under other keys than these, unless a run waits to be resumed, which may need it.
func (r Resolved) Only(keys []string) error {
	if waiting, err := r.store.Pending(); err != nil || waiting != nil {
		return err
	}
	dir := filepath.Join(r.store.dir, resolvedDir)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return stateError(err)
	}
	for _, e := range entries {
		if !slices.Contains(keys, e.Name()) {
			if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
				return stateError(err)
			}
		}
	}
	return nil
}

// Forget removes all of it.
func (r Resolved) Forget() error {
	return stateError(os.RemoveAll(filepath.Join(r.store.dir, resolvedDir)))
}
