// Command reference writes the generated pages of docs/reference that come from the source of the checkout:
//
//	reference ROOT DIR
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/testenv/reference"
	"github.com/machineadm/machineadm/testenv/texts"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference ROOT DIR")
		os.Exit(2)
	}
	if err := write(context.Background(), os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func write(ctx context.Context, root, dir string) error {
	source, err := reference.Read(reference.Directories(root)...)
	if err != nil {
		return err
	}
	documents, err := reference.Page(source, root)
	if err != nil {
		return err
	}
	rooms, err := texts.Collect(ctx, root, texts.Product()...)
	if err != nil {
		return err
	}
	for name, page := range map[string][]byte{"documents.md": documents, "errors.md": texts.Page(texts.Shown(rooms))} {
		if err := os.WriteFile(filepath.Join(dir, name), page, 0o644); err != nil { //nolint:gosec // documentation
			return err
		}
	}
	return nil
}
