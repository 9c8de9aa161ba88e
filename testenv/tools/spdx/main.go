// Command spdx reads a bill of materials from standard input with the library of the SPDX project, checks it, and writes it again:
// a field that is missing then was not one of SPDX 2.3.
package main

import (
	"fmt"
	"os"

	"github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdxlib"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "spdx:", err)
		os.Exit(1)
	}
}

func run() error {
	document, err := json.Read(os.Stdin)
	if err != nil {
		return err
	}
	if err := spdxlib.ValidateDocument(document); err != nil {
		return err
	}
	return json.Write(document, os.Stdout)
}
