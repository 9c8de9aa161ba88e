package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

const (
	exitPass  = 0
	exitFail  = 1
	exitUsage = 2
)

// selected requires every name in known.
func selected(option string, names, known []string) error {
	for _, name := range names {
		if slices.Contains(known, name) {
			continue
		}
		if meant := document.Nearest(name, known); meant != "" {
			return fmt.Errorf("%s: there is no %q: did you mean %s?", option, name, meant)
		}
		return fmt.Errorf("%s: there is no %q: use one of %s", option, name, strings.Join(known, ", "))
	}
	return nil
}

// isDirectory requires a directory, or no name.
func isDirectory(name string) error {
	if name == "" {
		return nil
	}
	info, err := os.Stat(name)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is no directory", name)
	}
	return err
}
