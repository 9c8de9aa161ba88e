package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man", "man8")
	if err := generate(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

// commands are all that a person can type, except help.
func commands(c *cobra.Command) []string {
	out := []string{strings.ReplaceAll(c.CommandPath(), " ", "-") + ".8"}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" {
			out = append(out, commands(sub)...)
		}
	}
	return out
}

func TestEveryCommandHasItsPage(t *testing.T) {
	t.Parallel()
	root := cli.NewRoot(nil, io.Discard, io.Discard)
	got := pages(t)
	want := commands(root)
	slices.Sort(want)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) || len(want) < 14 {
		t.Errorf("pages %q, want %q", names, want)
	}
	for name, page := range got {
		if !strings.HasPrefix(page, ".nh\n.TH \"MACHINEADM") || !strings.Contains(page, ".SH SYNOPSIS") {
			t.Errorf("%s is no manual page:\n%.200s", name, page)
		}
	}
	for _, flag := range []string{"--root", "--phase", "--dry-run", "--timeout", "--plugin-dir"} {
		if text := strings.ReplaceAll(got["machineadm-apply.8"], `\-`, "-"); !strings.Contains(text, flag) {
			t.Errorf("machineadm-apply.8 does not explain %s", flag)
		}
	}
}

func TestPagesAreReproducible(t *testing.T) {
	t.Parallel()
	if first, second := pages(t), pages(t); !maps.Equal(first, second) {
		t.Error("the same source gave other pages")
	}
}
