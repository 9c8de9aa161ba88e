// Command mirror writes the types of the custom resources from the document kinds of the contract.
//
//	mirror DIRECTORY FILE    the directory of contract/v1alpha1, and the file to write
//
// The custom resources have the names, JSON names and comments of the contract. Only the types differ that a custom resource
// cannot have: a secret is a reference to a key of a Secret, a free value is apiextensionsv1.JSON, an unsigned number is an
// IntOrString, an int is an int64, and embedded structs are flattened. What a comment of the contract says of values in words is
// in rules.go as markers of controller-gen.
package main

import (
	"fmt"
	"go/format"
	"os"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mirror:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: mirror DIRECTORY FILE")
	}
	source, err := read(args[0])
	if err != nil {
		return err
	}
	text, err := write(source, v1alpha1.MachineKinds())
	if err != nil {
		return err
	}
	formatted, err := format.Source(text)
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], formatted, 0o644) //nolint:gosec // source code is readable by all
}
