// Command reference writes what is generated from the source of the contract into a directory that is laid out as the checkout:
// docs/reference/documents.md and review.md, the JSON schemas and the custom resource definitions of the document kinds, and, from all
// definitions, docs/reference/controller-api.md:
//
//	reference ROOT DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/conformance"
	"github.com/machineadm/machineadm/testenv/reference"
	"github.com/machineadm/machineadm/testenv/spec"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference ROOT DIR")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(root, dir string) error {
	source, err := reference.Read(reference.Directories(root)...)
	if err != nil {
		return err
	}
	documents, err := reference.Page(source, root)
	if err != nil {
		return err
	}
	schemas, err := source.Schemas(root)
	if err != nil {
		return err
	}
	review, err := reviewPage(root)
	if err != nil {
		return err
	}
	definitions, err := source.Definitions(root)
	if err != nil {
		return err
	}
	if err := writeAll(dir, definitions); err != nil {
		return err
	}
	resources, err := reference.ResourcePage(root) // which reads the definitions
	if err != nil {
		return err
	}
	all := map[string][]byte{
		"docs/reference/documents.md":      documents,
		"docs/reference/controller-api.md": resources,
		"docs/reference/review.md":         []byte(review),
	}
	for name, text := range schemas {
		all[reference.SchemaFile("", name)] = text
	}
	return writeAll(dir, all)
}

// writeAll writes files by their path below a directory.
func writeAll(dir string, all map[string][]byte) error {
	for path, text := range all {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // of a checkout
			return err
		}
		if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // documentation
			return err
		}
	}
	return nil
}

func reviewPage(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "contract/SPEC.md"))
	if err != nil {
		return "", err
	}
	data, err := os.ReadFile(filepath.Join(root, "contract/clauses.json"))
	if err != nil {
		return "", err
	}
	evidence, err := spec.ParseEvidence(data)
	if err != nil {
		return "", err
	}
	parsed, _ := spec.Parse(string(text)) // TestSpec reports its problems
	var covered []string
	for _, check := range conformance.Checks() {
		covered = append(covered, check.Clause)
	}
	return spec.ReviewPage(parsed, evidence, covered), nil
}
