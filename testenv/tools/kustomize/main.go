// Command kustomize renders the directory that it is given, or what it refers to, as kustomize build does.
package main

import (
	"fmt"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kustomize:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: kustomize DIRECTORY")
	}
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // as the command has it
	rendered, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), arguments[0])
	if err != nil {
		return err
	}
	text, err := rendered.AsYaml()
	if err != nil {
		return err
	}
	_, err = os.Stdout.Write(text)
	return err
}
