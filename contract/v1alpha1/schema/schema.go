// Package schema has the JSON schemas of the document kinds of this API version, generated from their structs and
// comments: make generate.
package schema

import "github.com/machineadm/machineadm/contract/v1alpha1"

// For returns the JSON schema (draft 2020-12) of a kind, nil when this release has none.
func For(apiVersion, kind string) []byte {
	if apiVersion != v1alpha1.APIVersion {
		return nil
	}
	return Of(v1alpha1.New(kind))
}

// Of returns the JSON schema of a document of this API version, nil for any other value.
func Of(doc any) []byte {
	if kind, ok := doc.(interface{ JSONSchema() []byte }); ok {
		return kind.JSONSchema()
	}
	return nil
}
