package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/internal/trust"
)

// testTimeout exceeds the duration of every step on a busy machine.
const testTimeout = 2 * time.Minute

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	deadline := time.NewTimer(testTimeout)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !condition() {
		select {
		case <-deadline.C:
			stacks := make([]byte, 1<<20)
			t.Fatalf("waited in vain: %s\n%s", what, stacks[:runtime.Stack(stacks, true)])
		case <-tick.C:
		}
	}
}

// descriptors counts what this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// children returns the child processes of a process, including zombies.
func children(t *testing.T, pid int) (pids []int) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "task")
	tasks, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		data, err := os.ReadFile(filepath.Join(dir, task.Name(), "children"))
		if err != nil { // a thread may have ended meanwhile
			continue
		}
		for _, field := range strings.Fields(string(data)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, child)
		}
	}
	return pids
}

// pidOf is the process of a plugin that has a witness.
func pidOf(t *testing.T, witness string) int {
	t.Helper()
	var seen struct {
		PID int `json:"pid"`
	}
	eventually(t, "the plugin says who it is", func() bool {
		data, err := os.ReadFile(witness)
		return err == nil && json.Unmarshal(data, &seen) == nil
	})
	return seen.PID
}

func gone(pid int) bool {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(data), ") Z ")
}

func TestEightPluginsAtOnce(t *testing.T) {
	s := newShelf(t)
	var plugins []catalog.Plugin
	for i := range 8 {
		plugins = append(plugins, s.put("p"+strconv.Itoa(i), script{}))
	}
	openBefore, runningBefore := descriptors(t), runtime.NumGoroutine()
	f := s.fleet(nil)
	started := make([]*Plugin, 2*len(plugins)) // each is asked for twice, at once
	errs := make([]error, len(started))
	var wait sync.WaitGroup
	for i := range started {
		wait.Go(func() { started[i], errs[i] = f.Start(t.Context(), plugins[i%len(plugins)]) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, p := range plugins {
		if started[i] != started[i+len(plugins)] {
			t.Errorf("%s was started twice", p.Binary)
		}
		if d := started[i].Description; "machineadm-noop-plugin-"+d.Name != p.Binary || len(started[i].SHA256) != 64 {
			t.Errorf("%s: described as %+v, digest %q", p.Binary, d, started[i].SHA256)
		}
	}
	if n := len(children(t, os.Getpid())); n != len(plugins) {
		t.Errorf("%d children, want %d plugins", n, len(plugins))
	}
	if err := f.KillAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := children(t, os.Getpid()); len(left) > 0 {
		t.Errorf("children are left: %v", left)
	}
	eventually(t, fmt.Sprintf("descriptors are back at %d", openBefore), func() bool { return descriptors(t) <= openBefore })
	eventually(t, fmt.Sprintf("goroutines are back at %d", runningBefore), func() bool { return runtime.NumGoroutine() <= runningBefore })
	var ends sync.WaitGroup
	for range 3 { // idempotent, and safe at once
		ends.Go(func() {
			if err := f.KillAll(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	ends.Wait()
	started[0].Kill()
	if _, err := f.Start(t.Context(), plugins[0]); !errors.Is(err, errEnded) {
		t.Errorf("after the end a plugin is not started; error %v", err)
	}
}

func TestFailedStartsLeaveNothing(t *testing.T) {
	tests := map[string]struct {
		script script
		says   string
		words  string
	}{
		"crash":             {script{Start: "crash"}, "ended before the handshake", "crashing before the handshake"},
		"silent":            {script{Start: "silent"}, "ended before the handshake", ""},
		"garbage":           {script{Start: "garbage", Say: "w0rds"}, "is no handshake", "w0rds"},
		"version":           {script{Start: "version"}, "another version of the protocol", ""},
		"hang":              {script{Start: "hang", Say: "w0rds"}, "did not complete the handshake in time", "w0rds"},
		"crash in Describe": {script{Describe: "crash"}, "ended without an answer", ""},
		"hang in Describe":  {script{Describe: "hang", Say: "w0rds"}, "did not describe itself within ", "w0rds"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			p := s.put("x", tt.script)
			limit := testTimeout
			if strings.Contains(name, "hang") {
				limit = 700 * time.Millisecond
			}
			start := func() (f *Fleet, open, running int, err error) {
				f = s.fleet(func(o *Options) { o.StartTimeout = limit })
				open, running = descriptors(t), runtime.NumGoroutine()
				_, err = f.Start(t.Context(), p)
				return f, open, running, err
			}
			begun := time.Now()
			f, openBefore, runningBefore, err := start()
			var refused *StartError
			for limit < 20*time.Second && errors.As(err, &refused) && (!strings.Contains(err.Error(), tt.says) || !strings.Contains(refused.Stderr, tt.words)) {
				limit *= 2 // a busy machine does not get as far within the limit
				f, openBefore, runningBefore, err = start()
			}
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), p.Path) {
				t.Fatalf("error %v, want %q", err, tt.says)
			}
			if took := time.Since(begun); took > testTimeout+2*limit {
				t.Errorf("it took %s", took)
			}
			if exit, _ := Classify(err); (exit == report.ExitDeadline) != strings.Contains(name, "hang") {
				t.Errorf("exit code %d", exit)
			}
			if !strings.Contains(refused.Stderr, tt.words) {
				t.Errorf("last words %q, want %q", refused.Stderr, tt.words)
			}
			if _, again := f.Start(t.Context(), p); !errors.Is(again, err) {
				t.Errorf("a second try is not made: %v", again)
			}
			eventually(t, "no child is left", func() bool { return len(children(t, os.Getpid())) == 0 })
			eventually(t, "descriptors are back", func() bool { return descriptors(t) <= openBefore })
			eventually(t, "goroutines are back", func() bool { return runtime.NumGoroutine() <= runningBefore })
		})
	}
}

func TestStartIsGivenUpWithItsContext(t *testing.T) {
	s := newShelf(t)
	witness := filepath.Join(s.dir, "witness")
	p := s.put("x", script{Start: "hang", Witness: witness})
	f := s.fleet(nil)
	ctx, cancel := context.WithCancel(t.Context())
	answer := make(chan error, 1)
	go func() { _, err := f.Start(ctx, p); answer <- err }()
	pid := pidOf(t, witness)
	cancel()
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's own", err)
	}
	eventually(t, "the plugin is gone", func() bool { return gone(pid) })
}

func TestKillAllDoesNotWaitForAStart(t *testing.T) {
	s := newShelf(t)
	witness, child := filepath.Join(s.dir, "witness"), filepath.Join(s.dir, "child")
	p := s.put("x", script{Start: "hang", Witness: witness, Child: child})
	f := s.fleet(func(o *Options) { o.StartTimeout = time.Hour })
	answer := make(chan error, 1)
	go func() { _, err := f.Start(t.Context(), p); answer <- err }()
	pid := pidOf(t, witness)
	if err := f.KillAll(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-answer; !errors.Is(err, errEnded) {
		t.Errorf("error %v, want %v", err, errEnded)
	}
	if !gone(pid) || len(children(t, os.Getpid())) > 0 {
		t.Error("the plugin, or what it started, is still there")
	}
}

// TestKillAllWhilePluginsStart: no process remains and no call blocks, in any order.
func TestKillAllWhilePluginsStart(t *testing.T) {
	s := newShelf(t)
	var plugins []catalog.Plugin
	for i := range 4 {
		plugins = append(plugins, s.put("p"+strconv.Itoa(i), script{}))
	}
	for _, after := range []time.Duration{0, 2 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond} {
		f := s.fleet(nil)
		var wait sync.WaitGroup
		for _, p := range plugins {
			wait.Go(func() {
				if started, err := f.Start(t.Context(), p); err == nil && started.Description.Name == "" {
					t.Error("a plugin without a description and without an error")
				} else if err != nil && !errors.Is(err, errEnded) {
					t.Errorf("error %v, want %v", err, errEnded)
				}
			})
		}
		select { // the test calls KillAll at several moments of the starts
		case <-time.After(after):
		case <-t.Context().Done():
		}
		if err := f.KillAll(t.Context()); err != nil {
			t.Error(err)
		}
		wait.Wait()
		if left := children(t, os.Getpid()); len(left) > 0 {
			t.Errorf("KillAll after %s left %v", after, left)
		}
	}
}

// TestKillOfAPluginThatIsStopped: such a plugin answers nothing, not even that it will exit.
func TestKillOfAPluginThatIsStopped(t *testing.T) {
	s := newShelf(t)
	witness := filepath.Join(s.dir, "witness")
	p := s.put("x", script{Witness: witness})
	f := s.fleet(nil)
	started, err := f.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, witness)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { started.Kill(); close(done) }()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Error("Kill waits for a plugin that cannot answer")
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		<-done
	}
	if !gone(pid) {
		t.Error("the plugin is still there")
	}
}

func TestUntrustedFileIsNotExecuted(t *testing.T) {
	for name, corrupt := range map[string]func(t *testing.T, s *shelf, p catalog.Plugin) (fault string){
		"the file can be written by others": func(t *testing.T, _ *shelf, p catalog.Plugin) string {
			t.Helper()
			chmod(t, p.Path, 0o757)
			return p.Path
		},
		"its directory can be written by others": func(t *testing.T, s *shelf, _ catalog.Plugin) string {
			t.Helper()
			chmod(t, s.dir, 0o777)
			return s.dir
		},
		"it is a link into such a directory": func(t *testing.T, s *shelf, p catalog.Plugin) string {
			t.Helper()
			dir := filepath.Join(filepath.Dir(s.dir), "open")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(p.Path, filepath.Join(dir, "real")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(dir, "real"), p.Path); err != nil {
				t.Fatal(err)
			}
			chmod(t, dir, 0o777)
			return dir
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			witness := filepath.Join(t.TempDir(), "witness")
			p := s.put("x", script{Witness: witness})
			fault := corrupt(t, s, p)
			_, err := s.fleet(nil).Start(t.Context(), p)
			var refused *trust.Error
			if !errors.As(err, &refused) || refused.Path != fault || refused.Remedy == "" {
				t.Fatalf("error %v, want the refusal of %s", err, fault)
			}
			if _, err := os.Lstat(witness); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it was executed (%v)", err)
			}
		})
	}
}

func chmod(t *testing.T, path string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		t.Fatal(err)
	}
}

// TestInheritedDescriptor: a lock is held until the last process that a plugin started is gone.
func TestInheritedDescriptor(t *testing.T) {
	s := newShelf(t)
	lock, err := os.Create(filepath.Join(s.dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	witness := filepath.Join(s.dir, "witness")
	p := s.put("x", script{Witness: witness})
	f := s.fleet(func(o *Options) { o.Inherit = []*os.File{lock} })
	started, err := f.Start(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	at, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/3", pidOf(t, witness)))
	if err != nil || at != lock.Name() {
		t.Errorf("descriptor 3 of the plugin is %q (%v), want the lock", at, err)
	}
	if _, err := started.Plan(t.Context(), pluginv1.Request{Document: []byte(`{"spec":{}}`)}); err != nil {
		t.Error(err)
	}
	started.Kill()
	if err := lock.Close(); err != nil {
		t.Error(err)
	}
}
