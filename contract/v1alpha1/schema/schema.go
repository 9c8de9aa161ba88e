// Package schema has the JSON schemas of the document kinds of this API version, generated from their structs and
// comments: make generate.
package schema

import (
	"embed"
	"io/fs"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

//go:embed [A-Z]*.json
var files embed.FS

// For returns the JSON schema (draft 2020-12) of a kind, nil when this release has none.
func For(apiVersion, kind string) []byte {
	if apiVersion != v1alpha1.APIVersion {
		return nil
	}
	text, err := fs.ReadFile(files, kind+".json")
	if err != nil {
		return nil
	}
	return text
}
