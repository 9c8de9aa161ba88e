package crash

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machinetest"
	"github.com/machineadm/machineadm/testenv/download"
)

// installation is two releases, and a directory with the first one installed.
type installation struct {
	key, socket string
	releases    [2]string
	to          string
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	needs.Tier(t, needs.System)
	dir, err := os.MkdirTemp(built, "") //nolint:usetesting // the name of t.TempDir is too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	key := download.NewKey(t)
	i := &installation{key: key.Public().String(), socket: filepath.Join(dir, "trap"), to: filepath.Join(dir, "to")}
	for n := range i.releases {
		i.releases[n] = filepath.Join(dir, fmt.Sprint(n))
		r := download.Release{Version: fmt.Sprintf("v1.%d.0", n), Sequence: uint64(n + 1), Key: key} //nolint:gosec // 1 or 2
		r.Write(t, i.releases[n])
	}
	return i
}

// command returns a command of machineadm that takes a release to a directory.
func (i *installation) command(t *testing.T, name string, release int, program ...string) *exec.Cmd {
	t.Helper()
	name = strings.TrimPrefix(name, "first ")
	from := map[string]string{"install": "--manifest", "mirror": "--from"}[name]
	arguments := append(program, filepath.Join(built, hostBinary), name, from, i.releases[release], "--to", i.to, "--key", i.key) //nolint:gocritic // a new slice
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitLimit)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, arguments[0], arguments[1:]...)
	c.Env = []string{"PATH=/usr/bin:/bin"}
	return c
}

// ends runs a command, and requires its exit code.
func (i *installation) ends(t *testing.T, name string, release, code int) {
	t.Helper()
	c := i.command(t, name, release)
	out, _ := c.CombinedOutput() // the exit code is compared
	require.Equal(t, code, c.ProcessState.ExitCode(), string(out))
}

// trapped runs a command in which a trap hits the call with a number. It returns the trap, the exit code and the output.
func (i *installation) trapped(t *testing.T, name string, at int, errno unix.Errno) (*trap, int, string) {
	t.Helper()
	_ = os.Remove(i.socket) // of an earlier trap
	p := setTrap(t, i.socket, aim{at: at, errno: errno})
	c := i.command(t, name, 1, "/proc/self/exe")
	c.Env = append(c.Env, trapVariable+"="+i.socket)
	out, _ := c.CombinedOutput() // the exit code is compared
	p.close(t)
	return p, c.ProcessState.ExitCode(), string(out)
}

// whole requires that what a reader of the directory finds is one of the releases, or nothing yet.
func (i *installation) whole(t *testing.T, name, hit string) {
	t.Helper()
	if name == "mirror" {
		if _, err := os.Stat(filepath.Join(i.to, "manifest.json")); err == nil {
			c := exec.CommandContext(t.Context(), filepath.Join(built, hostBinary), "mirror", "--from", i.to, "--to", i.to+"-copy", "--key", i.key)
			out, err := c.CombinedOutput()
			assert.NoError(t, err, "%s\n%s", hit, out)
			assert.NoError(t, os.RemoveAll(i.to+"-copy"))
		}
		return
	}
	if _, err := os.Lstat(filepath.Join(i.to, "current")); name == "first install" && os.IsNotExist(err) {
		return
	}
	said := map[string]bool{}
	for _, program := range []string{"bin/machineadm", "plugins/machineadm-sysctl-plugin-procfs"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(i.to, program)).Output()
		require.NoError(t, err, hit)
		_, version, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
		said[version] = true
	}
	assert.Len(t, said, 1, "%s: a mixture of releases: %v", hit, said)
}

// clean requires that a failed run has left nothing temporary.
func (i *installation) clean(t *testing.T, hit string) {
	t.Helper()
	if _, err := os.Stat(i.to); os.IsNotExist(err) {
		return
	}
	now := machinetest.Tree(t, i.to)
	for _, name := range []string{".new", ".download", ".lock", ".part-"} {
		if strings.Contains(now, name) {
			left(t, "%s leaves\n%s", hit, now)
		}
	}
}

// TestDurableNames: each name that mirror makes is durable before the next one, so that the manifest is the last one after a
// power loss too; and install makes the names of the directories above it durable.
func TestDurableNames(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	p, code, out := i.trapped(t, "mirror", 0, 0)
	require.Equal(t, report.ExitOK, code, out)
	renamed := 0
	for at, call := range p.order {
		if call == "rename "+i.to {
			renamed++
			require.Less(t, at+1, len(p.order), p.order)
			assert.Equal(t, "fsync "+i.to, p.order[at+1], p.order)
		}
	}
	assert.Equal(t, 4, renamed, p.order)
	above := filepath.Dir(i.to)
	i.to = filepath.Join(above, "a/b")
	p, code, out = i.trapped(t, "install", 0, 0)
	require.Equal(t, report.ExitOK, code, out)
	assert.Equal(t, []string{"mkdir ", "fsync " + above, "mkdir ", "fsync " + above + "/a"}, p.order[:4])
}

// TestInstallEverywhere kills a first installation, an upgrade and a copy of a release before each system call that changes a file, and makes each
// fail, or with fewer than 125 rounds every fourth. What is there stays whole, and a rerun reaches the state of an undisturbed run.
func TestInstallEverywhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"install", "first install", "mirror"} {
		for _, errno := range []unix.Errno{0, unix.ENOSPC, unix.EIO} {
			t.Run(fmt.Sprintf("%s %d", name, errno), func(t *testing.T) {
				t.Parallel()
				i := newInstallation(t)
				prepare := func() {
					require.NoError(t, os.RemoveAll(i.to))
					if name == "install" {
						i.ends(t, name, 0, report.ExitOK)
					}
				}
				prepare()
				i.ends(t, name, 1, report.ExitOK)
				want := machinetest.Tree(t, i.to)
				hits, step := 0, 1
				if errno != 0 && *rounds < 125 {
					step = 4
				}
				for at := 1; ; at += step {
					prepare()
					p, code, out := i.trapped(t, name, at, errno)
					if p.hit == "" {
						break
					}
					hits++
					hit := fmt.Sprintf("call %d, %s, exit %d: %s", at, p.hit, code, out)
					i.whole(t, name, hit)
					if errno != 0 && code != report.ExitOK {
						assert.Equal(t, report.ExitState, code, hit)
						i.clean(t, hit)
					}
					i.ends(t, name, 1, report.ExitOK)
					if d := machinetest.Diff(want, machinetest.Tree(t, i.to)); d != "" {
						diverged(t, "%s: after a rerun\n%s", hit, d)
					}
				}
				assert.Greater(t, hits*step, 10)
				t.Logf("%d calls", hits)
			})
		}
	}
}

// TestInstallTwice runs two installations at once: one may find the directory locked, and the other one succeeds.
func TestInstallTwice(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.ends(t, "install", 1, report.ExitOK)
	want := machinetest.Tree(t, i.to)
	for range 20 {
		require.NoError(t, os.RemoveAll(i.to))
		one, other := i.command(t, "install", 1), i.command(t, "install", 1)
		require.NoError(t, one.Start())
		require.NoError(t, other.Start())
		_, _ = one.Wait(), other.Wait() // their exit codes are compared
		codes := []int{one.ProcessState.ExitCode(), other.ProcessState.ExitCode()}
		assert.Contains(t, codes, report.ExitOK)
		assert.Subset(t, []int{report.ExitOK, report.ExitLocked}, codes)
		assert.Equal(t, want, machinetest.Tree(t, i.to))
	}
	assert.NoError(t, filepath.WalkDir(i.to, func(path string, _ fs.DirEntry, err error) error {
		assert.NotContains(t, path, ".new")
		return err
	}))
}
