// Package imagebuilder tests the Ansible role of installer/image-builder on booted nodes, and what an image that it has cleaned
// does at its first boot.
package imagebuilder

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// goss has the keys of a goss file that the files of installer/image-builder/goss use, with their meaning in goss 0.4. goss
// itself is not available as a package.
type goss struct {
	File    map[string]file    `json:"file"`
	Command map[string]command `json:"command"`
}

type file struct {
	Exists   bool   `json:"exists"`
	Filetype string `json:"filetype"` // file, directory or symlink
	Owner    string `json:"owner"`
	Mode     string `json:"mode"` // octal
}

type command struct {
	ExitStatus int      `json:"exit-status"`
	Stdout     []string `json:"stdout"`  // each is part of a line
	Timeout    int      `json:"timeout"` // in milliseconds
}

// parse reads a goss file. Another key than those above is an error.
func parse(name string, data []byte) (goss, error) {
	var g goss
	text, err := document.JSON(name, data)
	if err != nil {
		return g, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return g, decoder.Decode(&g)
}

// machine runs a command with arguments in a shell of the checked machine.
type machine func(argv ...string) (stdout string, exit int)

// check returns one error for each resource of the file that is not as it says.
func (g goss) check(on machine) error {
	var errs []error
	for _, path := range slices.Sorted(maps.Keys(g.File)) {
		if err := g.File[path].check(on, path); err != nil {
			errs = append(errs, err)
		}
	}
	for _, line := range slices.Sorted(maps.Keys(g.Command)) {
		if err := g.Command[line].check(on, line); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (f file) check(on machine, path string) error {
	out, exit := on("stat", "-c", "%F|%U|%a", path)
	if exists := exit == 0; exists != f.Exists {
		return fmt.Errorf("file %s: exists is %t", path, exists)
	}
	if !f.Exists {
		return nil
	}
	names := map[string]string{"regular file": "file", "regular empty file": "file", "directory": "directory", "symbolic link": "symlink"}
	parts := strings.Split(strings.TrimSpace(out), "|")
	got := file{Exists: true, Filetype: names[parts[0]], Owner: parts[1], Mode: fmt.Sprintf("%04s", parts[2])}
	if got != f {
		return fmt.Errorf("file %s: %+v, expected %+v", path, got, f)
	}
	return nil
}

func (c command) check(on machine, line string) error {
	out, exit := on("timeout", fmt.Sprintf("%.3f", float64(c.Timeout)/1000), "sh", "-c", line)
	if exit != c.ExitStatus {
		return fmt.Errorf("command %q: exit status %d, expected %d", line, exit, c.ExitStatus)
	}
	for _, part := range c.Stdout {
		if !strings.Contains(out, part) {
			return fmt.Errorf("command %q: %q is not in its output", line, part)
		}
	}
	return nil
}
