package conformance

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
)

// wanted returns what is wrong with an object or a passphrase, without showing it, or "".
func (r *runner) wanted(got []byte) (string, error) {
	digest := sha256.Sum256(got)
	if want := r.c.expect.SHA256; want != "" && hex.EncodeToString(digest[:]) != want {
		return "its SHA-256 is not that of sha256 in expect.yaml", nil
	}
	if r.c.expect.File == "" {
		return "", nil
	}
	want, err := os.ReadFile(filepath.Join(r.counterpart.dir, filepath.FromSlash(r.c.expect.File)))
	if err != nil || bytes.Equal(got, want) {
		return "", err
	}
	return "it is not what served/" + r.c.expect.File + " has", nil
}

// expectBytes makes an object or a passphrase the expectation: by the file of served/ that it equals, else by its digest.
func (r *runner) expectBytes(got []byte) error {
	digest := sha256.Sum256(got)
	r.c.expect.SHA256 = hex.EncodeToString(digest[:])
	return filepath.WalkDir(r.counterpart.dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(r.counterpart.dir, name)
		if err != nil {
			return err
		}
		if data, err := os.ReadFile(name); err != nil || !bytes.Equal(data, got) {
			return err
		}
		r.c.expect.File, r.c.expect.SHA256 = filepath.ToSlash(below), ""
		return fs.SkipAll
	})
}
