package launch

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/internal/proctree"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/internal/trust"
)

// writeHook writes an init hook with this shell script into a new directory.
func writeHook(t *testing.T, script string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "init-hook")
	require.NoError(t, needs.WriteProgram(path, []byte("#!/bin/sh\n"+script+"\n")))
	return path
}

// openHook opens a hook with this script where systemd is not PID 1.
func openHook(t *testing.T, script string) *InitHook {
	t.Helper()
	h, err := openInitHook("/nonexistent", writeHook(t, script), []string{"PATH=/usr/bin:/bin", "LANG=C.UTF-8"})
	require.NoError(t, err)
	t.Cleanup(h.Close)
	return h
}

func TestInitHookCall(t *testing.T) {
	h := openHook(t, `for word; do echo "[$word]"; done; pwd; readlink /proc/self/fd/0; env | grep -v ^PWD= | sort; echo quiet >&2`)
	want := "[resume-install]\n[/opt/my tools/machineadm]\n[it's]\n/\n/dev/null\nLANG=C.UTF-8\nPATH=/usr/bin:/bin\n"
	for _, besidePlugins := range []bool{true, false} {
		var tree *proctree.Tree
		if besidePlugins {
			var err error
			tree, err = proctree.Contain()
			require.NoError(t, err)
		}
		got, err := h.Call(t.Context(), tree, HookResumeInstall, "/opt/my tools/machineadm", "it's")
		require.NoError(t, err)
		assert.Equal(t, want, got)
		if besidePlugins {
			require.NoError(t, tree.KillDescendants(t.Context()))
		}
	}
}

// ended reports whether a file holds at least one whole line.
func ended(t *testing.T, path string) bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(t, err)
	}
	return strings.Contains(string(text), "\n")
}

func TestInitHookFails(t *testing.T) {
	for name, tt := range map[string]struct{ script, cause, output string }{
		"exit status": {"echo out; echo c4n4ry >&2; exit 3", "exit status 3", "out\nc4n4ry\n"},
		"killed":      {"echo out; kill -KILL $$", "exit status 137", "out\n"},
		"time-out":    {"echo out; sleep 1000 & echo $! >$LEFT; wait", "it did not end within LIMIT", "out\n"},
	} {
		t.Run(name, func(t *testing.T) {
			h := openHook(t, tt.script)
			left := filepath.Join(t.TempDir(), "left")
			h.environment = append(h.environment, "LEFT="+left)
			if name == "time-out" {
				h.timeout = 500 * time.Millisecond
			}
			_, err := h.Call(t.Context(), nil, HookReboot)
			for name == "time-out" && h.timeout < time.Minute && !ended(t, left) { // a busy machine starts the shell too late
				h.timeout *= 2
				_, err = h.Call(t.Context(), nil, HookReboot)
			}
			var failed *HookError
			require.ErrorAs(t, err, &failed)
			assert.Equal(t, h.path+" reboot: "+strings.Replace(tt.cause, "LIMIT", h.timeout.String(), 1), err.Error(), "the output is for details.json alone")
			assert.Equal(t, tt.output, failed.Output)
			assert.Contains(t, failed.Hint(), "details.json")
			if pid, err := os.ReadFile(left); name == "time-out" {
				require.NoError(t, err)
				id, err := strconv.Atoi(strings.TrimSpace(string(pid)))
				require.NoError(t, err)
				assert.True(t, gone(id), "a process of the hook is left")
			}
		})
	}
	t.Run("interpreter", func(t *testing.T) {
		h := openHook(t, "")
		require.NoError(t, needs.WriteProgram(h.path, []byte("#!/nonexistent\n")))
		_, err := h.Call(t.Context(), nil, HookReboot)
		var missing *InterpreterError
		require.ErrorAs(t, err, &missing)
		var failed *HookError
		require.ErrorAs(t, err, &failed)
		assert.NotContains(t, failed.Hint(), "details.json", "there is no output")
	})
}

func TestInitHookLeavesNothing(t *testing.T) {
	h := openHook(t, "setsid sleep 1000 & echo $!")
	out, err := h.Call(t.Context(), nil, HookResumeRemove)
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(out))
	require.NoError(t, err)
	assert.True(t, gone(pid))
}

func TestInitHookOutputIsBounded(t *testing.T) {
	h := openHook(t, "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2; echo end >&2; exit 1")
	_, err := h.Call(t.Context(), nil, HookReboot)
	var failed *HookError
	require.ErrorAs(t, err, &failed)
	assert.Len(t, failed.Output, 2*tailBytes)
	assert.True(t, strings.HasSuffix(failed.Output, "\x00end\n"))
}

func TestInitHookMachineID(t *testing.T) {
	const id = "0123456789abcdef0123456789abcdef"
	for script, valid := range map[string]bool{
		"echo " + id:                        true,
		"printf " + id:                      true,
		"echo note >&2; echo " + id:         true,
		"echo " + strings.ToUpper(id):       false,
		"echo " + id[1:]:                    false,
		"echo " + id + "; echo " + id:       false,
		"echo 01234567-89ab-cdef-0123-4567": false,
		"true":                              false,
		"echo " + id + "; exit 1":           false,
	} {
		h := openHook(t, `test "$1" = machine-id || exit 2; `+script)
		got, err := h.MachineID(t.Context())
		if valid {
			require.NoError(t, err, script)
			assert.Equal(t, id, got)
			continue
		}
		var failed *HookError
		require.ErrorAs(t, err, &failed, script)
		assert.NotContains(t, err.Error(), id[1:])
	}
}

// TestInitHookIsTheCheckedFile: what replaces the file after the check is not executed.
func TestInitHookIsTheCheckedFile(t *testing.T) {
	h := openHook(t, "echo checked")
	require.NoError(t, os.Rename(writeHook(t, "echo other"), h.path))
	got, err := h.Call(t.Context(), nil, HookReboot)
	require.NoError(t, err)
	assert.Equal(t, "checked\n", got)
}

func TestOpenInitHook(t *testing.T) {
	systemd := t.TempDir()
	for name, tt := range map[string]struct {
		change  func(t *testing.T, path string)
		problem string
	}{
		"trusted":             {func(*testing.T, string) {}, ""},
		"writable by others":  {func(t *testing.T, path string) { chmod(t, path, 0o757) }, "can be written by everyone"},
		"not executable":      {func(t *testing.T, path string) { chmod(t, path, 0o644) }, "has no execute permission"},
		"in an open ancestor": {func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o777) }, "can be written by its group and everyone"},
		"a directory": {func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		}, "is not a regular file"},
		"of another user": {func(t *testing.T, path string) {
			needs.Root(t)
			require.NoError(t, os.Chown(path, 12345, -1))
		}, "belongs to user 12345"},
	} {
		t.Run(name, func(t *testing.T) {
			path := writeHook(t, "true")
			tt.change(t, path)
			h, err := openInitHook("/nonexistent", path, nil)
			if tt.problem == "" {
				require.NoError(t, err)
				h.Close()
			} else {
				var refused *trust.Error
				require.ErrorAs(t, err, &refused)
				assert.Contains(t, refused.Problem, tt.problem)
			}
			h, err = openInitHook(systemd, path, nil)
			require.NoError(t, err, "under systemd the hook is ignored")
			assert.Nil(t, h)
		})
	}
	path := filepath.Join(t.TempDir(), "init-hook")
	h, err := openInitHook("/nonexistent", path, nil)
	require.NoError(t, err)
	assert.Nil(t, h, "there is no hook")
	require.NoError(t, os.Symlink("nowhere", path))
	_, err = openInitHook("/nonexistent", path, nil)
	require.ErrorIs(t, err, fs.ErrNotExist, "a dangling link is no absent hook")
}
