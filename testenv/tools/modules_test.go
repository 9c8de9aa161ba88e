package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

func TestNodeModulesAreInstalledInTriesAndOnce(t *testing.T) {
	require.Linux(t) // npm is a script of the shell
	source, bin := t.TempDir(), t.TempDir()
	calls := filepath.Join(bin, "calls")
	write := func(path, text string) {
		t.Helper()
		if err := require.WriteProgram(path, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range npmFiles() {
		write(filepath.Join(source, name), name)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir()) // of the cache on other systems
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	for _, c := range []struct {
		name, lock, npm string
		calls           int
		fails           bool
	}{
		{"the third try succeeds", "a", `mkdir node_modules left; test "$(wc -l <` + calls + `)" -eq 3`, 3, false},
		{"the cache has them", "a", "false", 0, false},
		{"no try succeeds", "b", "echo no answer; false", 3, true},
	} {
		write(filepath.Join(source, lockFile), c.lock)
		write(filepath.Join(bin, "npm"), "#!/bin/sh\nset -e\necho >>"+calls+"\n"+c.npm+"\n")
		write(calls, "")
		var log bytes.Buffer
		modules, err := nodeModules(t.Context(), &log, source)
		if (err != nil) != c.fails || c.fails && !strings.Contains(err.Error(), "no answer") {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := os.Stat(modules); !c.fails && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if made, err := os.ReadFile(calls); err != nil || len(made) != c.calls {
			t.Errorf("%s: npm was called %d times, %v\n%s", c.name, len(made), err, &log)
		}
	}
}
