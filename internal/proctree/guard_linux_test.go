package proctree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/proctree/proc"
	"github.com/machineadm/machineadm/internal/require"
)

// TestOthersGoOn: what one program has started ends with it, and what another has started goes on, also where both have
// left their parents and their sessions.
func TestOthersGoOn(t *testing.T) {
	t.Parallel()
	require.Tool(t, "setsid")
	tree := contain(t)
	type one struct {
		*Process
		mark string
	}
	var programs []one
	for i := range 3 {
		ready := filepath.Join(t.TempDir(), "ready")
		m := mark(t) + strconv.Itoa(i)
		// The daemon's parent ends at once: so it has long been adopted when its program ends.
		p, err := tree.Start(t.Context(), Command{
			Path: "/bin/sh", Arguments: []string{"-c", daemonize + "; " + daemonize + "; " + forever},
			Environment: append(os.Environ(), m, "READY="+ready),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { endAll(t, m) })
		eventually(t, "the tree is ready", func() bool { _, err := os.Stat(ready); return err == nil })
		programs = append(programs, one{p, m})
	}
	for i, p := range programs {
		var before [][]int
		for _, other := range programs[i+1:] {
			before = append(before, daemons(t, other.PID()))
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if status, err := p.Wait(); status != 128+9 || err != nil {
			t.Errorf("status %d, %v", status, err)
		}
		if left := living(t, p.mark); len(left) > 0 {
			t.Errorf("processes %d of program %d are left", left, i)
		}
		for j, other := range programs[i+1:] {
			if now := daemons(t, other.PID()); !slices.Equal(now, before[j]) {
				t.Errorf("of another program lived %d, now %d", before[j], now)
			}
		}
		if err := p.Kill(); err != nil { // of what is gone
			t.Error(err)
		}
	}
}

// daemons are the two of a program that daemonizes twice: adopted by it, each in the session of its own parent, who is
// gone. What they start themselves comes and goes.
func daemons(t *testing.T, program int) []int {
	t.Helper()
	var found []int
	eventually(t, "two daemons live", func() bool {
		children, err := proc.ChildrenByParent(program)
		own, e := proc.Read(program)
		if err = errors.Join(err, e); err != nil {
			t.Fatal(err)
		}
		found = slices.DeleteFunc(children, func(pid int) bool {
			p, err := proc.Read(pid)
			return err != nil || p.Dead() || p.Session == pid || p.Session == own.Session
		})
		return len(found) == 2
	})
	return found
}

// TestGuardThatIsGone: nobody waits for ever, and nothing is started any more.
func TestGuardThatIsGone(t *testing.T) {
	t.Parallel()
	tree := contain(t)
	p, err := tree.Start(t.Context(), Command{Path: "/bin/sleep", Arguments: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	own, err := proc.Read(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	signalTo(t, own.Parent, syscall.SIGKILL)
	if _, err := p.Wait(); !errors.Is(err, errGuardGone) {
		t.Errorf("Wait: %v", err)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: %v", err)
	}
	if _, err := tree.Start(t.Context(), Command{Path: "/bin/true"}); !errors.Is(err, errGuardGone) {
		t.Errorf("Start: %v", err)
	}
	// contain closes it once more
	tree.socket, err = os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoppedGuard: the caller's context still counts.
func TestStoppedGuard(t *testing.T) {
	t.Parallel()
	tree := contain(t)
	p, err := tree.Start(t.Context(), Command{Path: "/bin/sleep", Arguments: []string{"1000"}})
	if err != nil {
		t.Fatal(err)
	}
	own, err := proc.Read(p.PID())
	if err != nil {
		t.Fatal(err)
	}
	signalTo(t, own.Parent, syscall.SIGSTOP)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := tree.Start(ctx, Command{Path: "/bin/true"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Start: %v", err)
	}
	signalTo(t, own.Parent, syscall.SIGCONT)
	if p, err := tree.Start(t.Context(), Command{Path: "/bin/true"}); err != nil {
		t.Errorf("Start after all: %v", err)
	} else if status, err := p.Wait(); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
}
