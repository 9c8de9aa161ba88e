package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/conformance"
)

const initUsage = `Write a first case of the conformance kit from a document.

  machineadm-conformance init --plugin BIN --document FILE [--root DIR] DIR

The plugin plans and applies the document on a copy of DIR/root, or on an empty tree without one. What it answers and makes
is written to DIR as the expectation: review it, because the case then fails for every other answer. Files that the document
needs belong into DIR/root before. The values of secret fields are replaced by ${canary}.

Options:
`

// initCase writes a case.
func initCase(ctx context.Context, args []string, out io.Writer) (int, error) {
	var plugin, document, root string
	flags := flag.NewFlagSet("machineadm-conformance init", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // run reports the error
	flags.StringVar(&plugin, "plugin", "", "the plugin `binary` (required)")
	flags.StringVar(&document, "document", "", "the `file` with one document (required)")
	flags.StringVar(&root, "root", "", "a `tree` below DIR/root, such as an image of the operating system")
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, initUsage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		fmt.Fprint(out, "\n", conformance.CaseFormat)
		return exitPass, err
	}
	switch {
	case err != nil:
		return exitUsage, fmt.Errorf("%w; init --help lists the options", err)
	case plugin == "":
		return exitUsage, errors.New("init: --plugin is missing: the plugin binary")
	case document == "":
		return exitUsage, errors.New("init: --document is missing: the file with the document")
	case flags.NArg() != 1:
		return exitUsage, errors.New("init: give one directory for the case after the options, such as testdata/conformance/first")
	}
	if err := isDirectory(root); err != nil {
		return exitUsage, fmt.Errorf("init: --root: %w", err)
	}
	suite := conformance.Suite{Binary: plugin, Root: root}
	if err := suite.Startable(); err != nil {
		return exitUsage, fmt.Errorf("init: --plugin: %w", err)
	}
	dir := filepath.Clean(flags.Arg(0))
	if err := suite.NewCase(ctx, document, dir); err != nil {
		return exitFail, fmt.Errorf("init: %w", err)
	}
	fmt.Fprintf(out, "wrote %s: review expect.yaml and expect/, then run\n  machineadm-conformance --plugin %s --cases %s --case %s\n",
		dir, plugin, filepath.Dir(dir), filepath.Base(dir))
	return exitPass, nil
}
