// Package examples has two documents of each kind of this API version: a minimal one, and one with every field, in which a field that
// excludes another is a comment without a space behind the #.
package examples

import (
	"bytes"
	"embed"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

//go:embed *.yaml
var files embed.FS

// Full is the part of a file name ahead of .yaml that a document with every field has.
const Full = ".full"

// For returns the minimal document of a kind, or the one with every field, as YAML, without the first line of its file: an editor finds
// the schema by it, in a checkout alone. It is nil when this release has none.
func For(apiVersion, kind string, full bool) []byte {
	if apiVersion != v1alpha1.APIVersion {
		return nil
	}
	if full {
		kind += Full
	}
	text, err := fs.ReadFile(files, kind+".yaml")
	if err != nil {
		return nil
	}
	_, text, _ = bytes.Cut(text, []byte("\n"))
	return text
}
