// Command mangen writes the manual pages of machineadm, one for each command, into a directory.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: mangen DIR")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "mangen:", err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.NewRoot(nil, io.Discard, io.Discard)
	root.DisableAutoGenTag = true
	epoch := time.Unix(0, 0).UTC() // the same pages from the same source
	return doc.GenManTree(root, &doc.GenManHeader{
		Title: "MACHINEADM", Section: "8", Source: "machineadm " + version.String(), Manual: "machineadm", Date: &epoch,
	}, dir)
}
