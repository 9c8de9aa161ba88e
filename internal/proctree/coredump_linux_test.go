package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// playSecret turns core dumps off and starts itself, both as a guard and as an open file, from a process that is not dumpable.
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
	if err != nil {
		t.Fatal(err)
	}
	expect(t, string(out), "limit 0 0, dumpable 0\nargs [\"/bin/echo\"]\ndir /\nvalue \"\"\ngroup leader true\nstdin \"\"\n")
}
