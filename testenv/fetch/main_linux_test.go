package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
)

const (
	root    = "../.."
	version = "v1.2.3"
	// program takes the place of machineadm: it prints its arguments and ends with an exit code of its own. It is longer than a
	// packet and the buffers of a connection.
	program = "#!/bin/sh\nprintf '%s|' ran \"$@\"\nexit 7\n"
	padding = 1 << 20
	ranCode = 7
	ranText = "ran|install|--manifest|http://a b/manifest.json|"
	limit   = 2 * time.Minute
)

func content() []byte {
	return append([]byte(program), bytes.Repeat([]byte("# padding\n"), padding/10)...)
}

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// bench is a destination of the script. It is below the user's cache directory, because other users can write /tmp.
type bench struct {
	t    testing.TB
	dir  string
	head Head
	path string   // PATH; empty for the test's own
	args []string // of the script; machineadm install receives them
}

func newBench(t testing.TB, urls ...string) *bench {
	t.Helper()
	needs.Root(t)
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		needs.Missing(t, "needs amd64 or arm64")
	}
	cache, err := os.UserCacheDir()
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(cache, 0o755))
	dir, err := os.MkdirTemp(cache, "machineadm-fetch-test-") //nolint:usetesting // t.TempDir is below /tmp
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	right := digest(content())
	return &bench{t: t, dir: dir, head: Head{
		Version: version, URLs: urls, AMD64: right, ARM64: right, To: filepath.Join(dir, "to"), Waits: ".1 .1",
	}, args: []string{"--manifest", "http://a b/manifest.json"}}
}

// result is how a run of the script ended.
type result struct {
	code        int
	out, errOut string
}

// command returns the script under a shell, in a process group of its own.
func (b *bench) command(ctx context.Context, shell ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	b.t.Helper()
	text, err := Script(root, Shell, b.head)
	require.NoError(b.t, err)
	file, err := os.CreateTemp(b.dir, "fetch-*.sh")
	require.NoError(b.t, err)
	_, err = file.WriteString(text)
	require.NoError(b.t, errors.Join(err, file.Close()))
	argv := slices.Concat(shell, []string{file.Name()}, b.args)
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Dir, c.Env = b.dir, []string{"PATH=" + b.path, "HOME=" + b.dir}
	if b.path == "" {
		c.Env[0] = "PATH=" + os.Getenv("PATH")
	}
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	return c, &out, &errOut
}

// run runs the script, under dash unless a shell is given.
func (b *bench) run(shell ...string) result {
	b.t.Helper()
	if len(shell) == 0 {
		shell = []string{"/bin/dash"}
	}
	ctx, cancel := context.WithTimeout(b.t.Context(), limit)
	defer cancel()
	c, out, errOut := b.command(ctx, shell...)
	err := c.Run()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		require.NoError(b.t, err)
	}
	return result{code: c.ProcessState.ExitCode(), out: out.String(), errOut: errOut.String()}
}

// ran checks that machineadm ran with the arguments, and that it alone is left.
func (b *bench) ran(got result) {
	b.t.Helper()
	require.Equal(b.t, ranCode, got.code, "%+v", got)
	require.Equal(b.t, ranText, got.out)
	require.Equal(b.t, []string{"machineadm"}, b.left())
	info, err := os.Lstat(filepath.Join(b.head.To, "machineadm"))
	require.NoError(b.t, err)
	require.Equal(b.t, os.FileMode(0o755), info.Mode())
}

// refused checks that nothing ran and nothing is left, and that the error has these words.
func (b *bench) refused(got result, words ...string) {
	b.t.Helper()
	require.Equal(b.t, 1, got.code, "%+v", got)
	require.Empty(b.t, got.out)
	require.Empty(b.t, b.left())
	for _, word := range words {
		require.Contains(b.t, got.errOut, word)
	}
}

// left returns the names in the destination.
func (b *bench) left() []string {
	b.t.Helper()
	entries, err := os.ReadDir(b.head.To)
	if !errors.Is(err, os.ErrNotExist) {
		require.NoError(b.t, err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// serve serves the release with a handler, and returns the URL of its directory.
func serve(t testing.TB, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL + "/" + version
}

// good serves the program.
func good(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, "/"+version+"/"+File(version, "linux", runtime.GOARCH)) {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(content()) // the client can be killed
}

// toolbox returns a PATH that has these programs alone. An entry NAME=BINARY is a link to another program.
func toolbox(t *testing.T, programs ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, p := range append(programs, "uname", "mkdir", "ls", "rm", "cut", "sync", "sleep", "chmod", "mv", "sh", "timeout") {
		name, binary, linked := strings.Cut(p, "=")
		if !linked {
			binary = name
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			continue
		}
		require.NoError(t, os.Symlink(needs.Tool(t, binary), filepath.Join(dir, name)))
	}
	return dir
}
