package proctree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// playSecret turns core dumps off and starts itself as an open file, from a process that is not dumpable.
func playSecret() error {
	if err := NoCoreDumps(); err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err != nil {
		return err
	}
	fmt.Printf("limit %d %d, dumpable %d\n", limit.Cur, limit.Max, dumpable)
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return err
	}
	tree, err := Contain()
	if err != nil {
		return err
	}
	p, err := tree.Start(context.Background(), Command{
		Path: "/bin/echo", Program: self, Dir: "/", Environment: []string{roleVariable + "=show", strangers()},
		Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return errors.Join(err, self.Close())
}

func TestNoCoreDumps(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{roleVariable + "=secret"}
	out, err := cmd.Output()
	require.NoError(t, err)
	require.Equal(t, "limit 0 0, dumpable 0\nargs [\"/bin/echo\"]\ndir /\nvalue \"\"\ngroup leader true\nstdin \"\"\n", string(out))
}

// TestDieWithParent: a process that asked for it by itself dies with its parent.
func TestDieWithParent(t *testing.T) {
	t.Parallel()
	m, ready := mark(t), filepath.Join(t.TempDir(), "ready")
	parent := exec.Command("/bin/sh", "-c", `"$0" "$READY" <&3 & wait`, os.Args[0])
	reader, writer, err := os.Pipe()
	require.NoError(t, err)
	defer func() { require.NoError(t, errors.Join(reader.Close(), writer.Close())) }()
	parent.ExtraFiles = []*os.File{reader}
	parent.Env = []string{roleVariable + "=mortal", "READY=" + ready, m}
	require.NoError(t, parent.Start())
	eventually(t, "the child runs", func() bool { _, err := os.Stat(ready); return err == nil })
	require.Len(t, living(t, m), 2)
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	allGone(t, m)
}

// playMortal makes a file and waits for its end, or the end of the test.
func playMortal(ready string) error {
	if err := DieWithParent(); err != nil {
		return err
	}
	if err := os.WriteFile(ready, nil, 0o600); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
