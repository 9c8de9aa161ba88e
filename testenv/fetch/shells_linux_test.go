package fetch

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// maxShell is the largest size of the shell script, so that user data has room for the rest.
const maxShell = 2 << 10

func TestSize(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(filepath.Join(root, Shell))
	require.NoError(t, err)
	assert.LessOrEqual(t, info.Size(), int64(maxShell))
}

func TestShellcheck(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), needs.Tool(t, "shellcheck"), "--shell=sh", "--severity=warning", filepath.Join(root, Shell)).CombinedOutput()
	assert.NoError(t, err, "%s", out)
}

func TestShells(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"dash", "bash", "bash --posix", "busybox sh", "mksh", "yash", "zsh --emulate sh"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			argv := strings.Fields(shell)
			argv[0] = needs.Tool(t, argv[0])
			b := newBench(t, serve(t, good))
			b.ran(b.run(argv...))
			b.ran(b.run(argv...)) // it can be repeated
			require.NoError(t, os.RemoveAll(b.head.To))
			b.head.AMD64, b.head.ARM64 = digest(nil), digest(nil)
			b.refused(b.run(argv...), "has another SHA-256", "nothing installed: check urls=")
		})
	}
}

// TestTools: the script uses what a system has, to download and for the digest.
func TestTools(t *testing.T) {
	t.Parallel()
	for _, get := range []string{"curl", "wget", "wget=busybox"} {
		for _, sum := range []string{"sha256sum", "shasum", "openssl", "sha256sum=busybox"} {
			t.Run(get+" "+sum, func(t *testing.T) {
				t.Parallel()
				b := newBench(t, serve(t, good))
				b.path = toolbox(t, get, sum)
				b.ran(b.run())
			})
		}
	}
	t.Run("busybox alone", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, serve(t, good))
		var all []string
		for _, name := range []string{"wget", "sha256sum", "uname", "mkdir", "ls", "rm", "cut", "sync", "sleep", "chmod", "mv", "sh", "timeout"} {
			all = append(all, name+"=busybox")
		}
		b.path = toolbox(t, all...)
		b.ran(b.run(needs.Tool(t, "busybox"), "sh"))
	})
	t.Run("no timeout", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, serve(t, good))
		b.path = toolbox(t, "curl", "sha256sum")
		require.NoError(t, os.Remove(filepath.Join(b.path, "timeout")))
		b.ran(b.run())
	})
	t.Run("nothing to download", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.path = toolbox(t, "sha256sum")
		b.refused(b.run(), "install one of: curl", "wget")
	})
	t.Run("no digest", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.path = toolbox(t, "curl")
		b.refused(b.run(), "install one of: sha256sum shasum", "openssl")
	})
}

func TestHead(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.head.AMD64, b.head.ARM64 = "", ""
	b.refused(b.run(), "to the SHA-256 of machineadm-v1.2.3-linux-")
	b = newBench(t)
	b.refused(b.run(), "check urls=")
	_, err := Script(root, PowerShell, Head{ARM64: digest(nil)})
	assert.ErrorContains(t, err, "has no variable arm64")
}

// TestPowerShell parses the script of Windows, which no test runs.
func TestPowerShell(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	node, dir := needs.Tool(t, "node"), t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS("powershell")))
	require.NoError(t, os.Symlink(tools.NodeModules(t, "powershell"), filepath.Join(dir, "node_modules")))
	parse := func(text string) (string, error) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "script.ps1"), []byte(text), 0o600))
		// The optimizing compiler would take seconds for the tables of the grammar.
		c := exec.CommandContext(t.Context(), node, "--liftoff-only", "parse.mjs", "script.ps1")
		c.Dir = dir
		out, err := c.CombinedOutput()
		return string(out), err
	}
	text, err := Script(root, PowerShell, Head{Version: version, URLs: []string{"http://a", "http://b"}, AMD64: digest(nil)})
	require.NoError(t, err)
	assert.Contains(t, text, "\n$urls = 'http://a', 'http://b'\n")
	out, err := parse(text)
	require.NoError(t, err, "%s", out)
	out, err = parse(text + "\nif ($x {\n")
	require.Error(t, err, "%s", out)
}
