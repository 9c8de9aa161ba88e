package conformance

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// digest returns the SHA-256 of an object or a passphrase, in hexadecimal.
func (p *plugin) digest(ctx context.Context, r pluginv1.Request) (string, error) {
	got, err := p.get(ctx, r, query{})
	digest := sha256.Sum256(got)
	return hex.EncodeToString(digest[:]), err
}

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
