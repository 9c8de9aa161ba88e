package main

import (
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
)

func pages(t *testing.T) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "man", "man8")
	if err := generate(dir, time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC)); err != nil {
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

// commands are all that help lists.
func commands(c *cobra.Command) []string {
	out := []string{strings.ReplaceAll(c.CommandPath(), " ", "-") + ".8"}
	for _, sub := range c.Commands() {
		if sub.Name() != "help" && !sub.Hidden {
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
		title := strings.ToUpper(strings.TrimSuffix(name, ".8"))
		if !strings.HasPrefix(page, ".nh\n.TH \""+title+"\" \"8\" \"Mar 2026\" \"machineadm ") || !strings.Contains(page, ".SH SYNOPSIS") {
			t.Errorf("%s is no manual page:\n%.200s", name, page)
		}
		if status := strings.Index(page, ".SH EXIT STATUS"); status < 0 || status > strings.Index(page, ".SH SEE ALSO") {
			t.Errorf("%s has no exit status before the pages to see", name)
		}
		if wrong := regexp.MustCompile(`\\fP\[?=`).FindString(page); wrong != "" {
			t.Errorf("%s shows a default as the value of an option", name)
		}
	}
	for _, flag := range []string{"--root", "--phase", "--dry-run", "--timeout", "--plugin-dir"} {
		if text := strings.ReplaceAll(got["machineadm-apply.8"], `\-`, "-"); !strings.Contains(text, flag) {
			t.Errorf("machineadm-apply.8 does not explain %s", flag)
		}
	}
	for _, option := range []string{
		"\\fB--dry-run\\fP\n", "\\fB-f\\fP, \\fB--path\\fP \\fIFILE\\fP\n", "preparation, provisioning, all (default all)\n", "(default 1h)\n",
	} {
		if !strings.Contains(got["machineadm-apply.8"], option) {
			t.Errorf("machineadm-apply.8 has no %q", option)
		}
	}
}

func TestPagesAreReproducible(t *testing.T) {
	t.Parallel()
	if first, second := pages(t), pages(t); !maps.Equal(first, second) {
		t.Error("the same source gave other pages")
	}
}
