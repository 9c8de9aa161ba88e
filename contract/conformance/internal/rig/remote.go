package rig

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
)

// Wanted returns what is wrong with an object or a passphrase, without showing it, or "".
func (r *Runner) Wanted(got []byte) (string, error) {
	digest := sha256.Sum256(got)
	if want := r.Case.Expect.SHA256; want != "" && hex.EncodeToString(digest[:]) != want {
		return "its SHA-256 is not that of sha256 in expect.yaml", nil
	}
	if r.Case.Expect.File == "" {
		return "", nil
	}
	want, err := os.ReadFile(filepath.Join(r.Counterpart.Dir, filepath.FromSlash(r.Case.Expect.File)))
	if err != nil || bytes.Equal(got, want) {
		return "", err
	}
	return "it is not what served/" + r.Case.Expect.File + " has", nil
}

// ExpectBytes makes an object or a passphrase the expectation: by the file of served/ that it equals, else by its digest.
func (r *Runner) ExpectBytes(got []byte) error {
	digest := sha256.Sum256(got)
	r.Case.Expect.SHA256 = hex.EncodeToString(digest[:])
	return filepath.WalkDir(r.Counterpart.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(r.Counterpart.Dir, name)
		if err != nil {
			return err
		}
		if data, err := os.ReadFile(name); err != nil || !bytes.Equal(data, got) {
			return err
		}
		r.Case.Expect.File, r.Case.Expect.SHA256 = filepath.ToSlash(below), ""
		return fs.SkipAll
	})
}
