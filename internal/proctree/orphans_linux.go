package proctree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// KillOrphans kills what ended descendants have left behind, until nothing of it is left or ctx ends. It returns what it killed.
func (t *Tree) KillOrphans(ctx context.Context) ([]Killed, error) { return t.kill(ctx, false) }

// kill kills children that are no running programs, round after round, since each whose parent dies becomes a child of
// this subreaper, until none is left or ctx ends. all includes those that another thread than the first one has started.
func (t *Tree) kill(ctx context.Context, all bool) (killed []Killed, err error) {
	// Short at first, since most processes die at once, then longer, for one that hangs in the kernel.
	const firstWait, lastWait = 500 * time.Microsecond, 50 * time.Millisecond
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		alive, collected, err := t.round(all)
		for _, k := range alive {
			if !slices.Contains(killed, k) {
				killed = append(killed, k)
			}
		}
		switch {
		case collected: // what it has left became a child after the children were listed
			continue
		case len(alive) == 0:
			return killed, err
		}
		if ctx.Err() != nil {
			return killed, errors.Join(fmt.Errorf("proctree: processes %v are still alive: %w", alive, ctx.Err()), err)
		}
		time.Sleep(wait)
	}
}

// round sends SIGKILL to each child that is to end and to its process group, so that a child that keeps replacing itself
// is caught, and collects those that are dead. Whatever is in the group of an orphan descends from this process too.
func (t *Tree) round(all bool) (alive []Killed, collected bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	children, err := t.children(all)
	spared := map[int]bool{0: true, 1: true, t.self.group: true}
	for pid := range t.running {
		spared[pid] = true
	}
	var groups []int
	for _, pid := range children {
		if t.running[pid] != nil {
			continue
		}
		s, readErr := readStat(pid)
		switch {
		case readErr != nil:
			err = errors.Join(err, readErr)
		case s.parent != t.pid:
		case s.dead():
			collect(pid)
			collected = true
		case inOtherCgroup(pid):
			spared[s.group] = true
		default:
			alive, groups = append(alive, Killed{pid, s.name}), append(groups, s.group)
		}
	}
	for i, k := range alive {
		if !spared[groups[i]] {
			_ = unix.Kill(-groups[i], unix.SIGKILL) // ESRCH if it has left that group since: the next line is for it
		}
		_ = unix.Kill(k.PID, unix.SIGKILL) // a child keeps its ID until it is collected
	}
	return alive, collected, err
}

// reap collects orphans as they die. The programs are collected where they are waited for.
func (t *Tree) reap() {
	died := make(chan os.Signal, 1)
	signal.Notify(died, unix.SIGCHLD)
	defer signal.Stop(died)
	for {
		select {
		case <-died:
			t.collectDead()
		case <-t.closed:
			return
		}
	}
}

// collectDead does nothing after KillDescendants, when this process may start others by other means than Start.
func (t *Tree) collectDead() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return
	}
	children, _ := childrenOfThread(t.pid) // KillOrphans reports what cannot be read
	for _, pid := range children {
		if s, err := readStat(pid); err == nil && t.running[pid] == nil && s.parent == t.pid && s.dead() {
			collect(pid)
		}
	}
}

// children are those that orphans can be among: what is orphaned comes to the first thread as long as that lives, and
// the first thread of a Go program does not end. all has the children of every thread.
func (t *Tree) children(all bool) ([]int, error) {
	if !all {
		return childrenOfThread(t.pid)
	}
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	if errors.Is(err, unix.ECHILD) { // most often, and much cheaper than to look through /proc
		return nil, nil
	}
	return childrenOf(t.pid)
}

// inOtherCgroup says that a process is in another control group than this one, in any hierarchy (cgroups(7)). Control
// groups that cannot be read are taken for the same.
func inOtherCgroup(pid int) bool {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return false
	}
	its, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cgroup")
	return err == nil && otherCgroup(string(own), string(its))
}

// otherCgroup compares what two processes' /proc/PID/cgroup hold. A process that is exiting seems to be in the root of
// each hierarchy of version 1, where no service manager puts anything.
func otherCgroup(own, its string) bool {
	return slices.ContainsFunc(strings.Fields(its), func(line string) bool {
		return !strings.HasSuffix(line, ":/") && !slices.Contains(strings.Fields(own), line)
	})
}

// exitSignal and the number of a signal are the exit status of what the signal ended, as shells have it.
const exitSignal = 128

// collect waits for a child that is dead.
func collect(pid int) (status int) {
	for {
		var w syscall.WaitStatus
		_, err := syscall.Wait4(pid, &w, syscall.WNOHANG|syscall.WALL, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case w.Signaled():
			return exitSignal + int(w.Signal())
		}
		return w.ExitStatus()
	}
}
