// Command reference writes the generated pages of docs/reference that come from the source of the checkout:
//
//	reference ROOT DIR
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/testenv/reference"
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
	return os.WriteFile(filepath.Join(dir, "documents.md"), documents, 0o644) //nolint:gosec // documentation
}
