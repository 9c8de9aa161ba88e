//go:build linux

package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestStartable: a file that cannot be started is reported once, with how to fix it.
func TestStartable(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		content string
		mode    os.FileMode
		says    string // "" is one that starts
	}{
		"a script":                {"#!/bin/sh\nexit 1\n", 0o755, ""},
		"found by env":            {"#!/usr/bin/env sh\nexit 1\n", 0o755, ""},
		"not executable":          {"#!/bin/sh\n", 0o644, "run chmod +x "},
		"no first line":           {"exit 1\n", 0o755, "no script whose first line names its interpreter"},
		"empty":                   {"", 0o755, "is no program for"},
		"no interpreter":          {"#!/no/such/python -u\n", 0o755, "the interpreter /no/such/python -u, which does not exist: install it"},
		"not found by env":        {"#!/usr/bin/env no-such-python\n", 0o755, "the interpreter /usr/bin/env no-such-python, which does not exist"},
		"lines of another system": {"#!/bin/sh\r\nexit 1\r\n", 0o755, "carriage return"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			binary := filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(binary, []byte(tt.content), tt.mode); err != nil {
				t.Fatal(err)
			}
			complaint(t, binary, tt.says)
		})
	}
	complaint(t, filepath.Join(t.TempDir(), "none"), "there is no plugin")
	complaint(t, t.TempDir(), "is a directory: give the plugin's own file")
	complaint(t, os.DevNull, "is no regular file")
	program, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	complaint(t, program, "")
}

func complaint(t *testing.T, binary, says string) {
	t.Helper()
	suite := Suite{Binary: binary}
	switch err := suite.Startable(); {
	case says == "" && err != nil:
		t.Error(err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("error %v, want one with %q", err, says)
	}
	if says == "" {
		return
	}
	if err := suite.Run(t.Context(), func(r Result) { t.Errorf("checked all the same: %+v", r) }); err == nil {
		t.Error("a plugin that cannot be started is checked without an error")
	}
}
