package fetch

import (
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

// TestFullDisk: the destination has no room for the file.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	for _, get := range []string{"curl", "wget", "wget=busybox"} {
		t.Run(get, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, serve(t, good))
			b.path = toolbox(t, get, "sha256sum", "mount")
			require.NoError(t, os.Mkdir(b.head.To, 0o755))
			b.refused(b.run(needs.Tool(t, "unshare"), "--mount", "/bin/sh", "-c",
				`mount -t tmpfs -o size=256k,mode=755 none "$0" && /bin/dash "$@"; code=$?; ls -A "$0"; exit $code`, b.head.To),
				"cannot download", "space in "+b.head.To)
		})
	}
}

// TestOthersCanWrite: another user could replace the file between its check and its start.
func TestOthersCanWrite(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(b *bench) error{
		"all":    func(b *bench) error { return os.Chmod(b.head.To, 0o777) },
		"sticky": func(b *bench) error { return os.Chmod(b.head.To, 0o777|os.ModeSticky) },
		"group":  func(b *bench) error { return os.Chmod(b.head.To, 0o775) },
		"owner":  func(b *bench) error { return os.Chown(b.head.To, 65534, 0) },
		"above":  func(b *bench) error { return os.Chmod(b.dir, 0o777) },
		"a link": func(b *bench) error {
			target := b.head.To + "-target"
			if err := os.Rename(b.head.To, target); err != nil {
				return err
			}
			if err := os.Symlink(target, b.head.To); err != nil {
				return err
			}
			return os.Chmod(target, 0o777)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := false
			b := newBench(t, serve(t, func(http.ResponseWriter, *http.Request) { asked = true }))
			require.NoError(t, os.Mkdir(b.head.To, 0o755))
			require.NoError(t, prepare(b))
			b.refused(b.run(), "others can change "+b.dir, "chmod go-w")
			assert.False(t, asked, "it asks the server")
		})
	}
}

// TestInterrupted: a killed run leaves a file that is not executable, and the next one removes it. A stopped run leaves none.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, serve(t, hang(padding/2)))
			b.head.Limit = "2" // a shell waits for its command before it acts on a signal
			require.NoError(t, os.MkdirAll(b.head.To, 0o755))
			old := []byte("#!/bin/sh\nexit 3\n")
			require.NoError(t, needs.WriteProgram(filepath.Join(b.head.To, "machineadm"), old))
			c, _, _ := b.command(t.Context(), "/bin/dash")
			c.WaitDelay = 10 * time.Millisecond // timeout(1) is a process group of its own, which outlives a killed shell
			require.NoError(t, c.Start())
			temporary := ""
			require.Eventually(t, func() bool {
				found, err := filepath.Glob(filepath.Join(b.head.To, ".machineadm-fetch.*"))
				if err != nil || len(found) == 0 {
					return false
				}
				temporary = found[0]
				info, err := os.Lstat(temporary)
				return err == nil && info.Size() > 0 && assert.Equal(t, os.FileMode(0o600), info.Mode())
			}, limit, 5*time.Millisecond)
			require.NoError(t, syscall.Kill(-c.Process.Pid, signal))
			require.Error(t, c.Wait())
			kept, err := os.ReadFile(filepath.Join(b.head.To, "machineadm"))
			require.NoError(t, err)
			assert.Equal(t, old, kept, "the earlier program is replaced")
			if signal == syscall.SIGKILL {
				assert.FileExists(t, temporary)
			} else {
				assert.NoFileExists(t, temporary)
			}
			b.head.URLs = []string{serve(t, good)}
			b.ran(b.run())
		})
	}
}

// TestAtOnce: runs at the same time do not disturb each other.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, serve(t, good))
	var all sync.WaitGroup
	results := make([]result, 4)
	for i := range results {
		all.Go(func() { results[i] = b.run() })
	}
	all.Wait()
	for _, got := range results {
		b.ran(got)
	}
}
