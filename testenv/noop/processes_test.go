package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
)

func TestPluginThatHangs(t *testing.T) {
	t.Parallel()
	t.Run("before the handshake", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{Start: "hang"})
		got := b.apply(doc("a", spec{}), "--timeout", "1s")
		if got.code != report.ExitDeadline || got.report.Outcome != report.RunFailed {
			t.Errorf("%s", got)
		}
	})
	t.Run("in Plan", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{})
		if got := b.apply(doc("a", spec{Plan: "hang"}), "--timeout", "1s"); got.code != report.ExitDeadline {
			t.Errorf("%s", got)
		}
	})
	t.Run("in Apply, until it is asked to stop", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{})
		got := b.apply(doc("a", spec{Touch: []string{"a", "b"}, Apply: "hang"}), "--timeout", "1s")
		if got.code != report.ExitDeadline {
			t.Errorf("%s", got)
		}
		if _, err := os.Stat(filepath.Join(b.root, "a")); err != nil {
			t.Errorf("the change in progress was not finished: %v", err)
		}
		if _, err := os.Stat(filepath.Join(b.root, "b")); err == nil {
			t.Error("another change was started after Stop")
		}
	})
}

// TestNothingOutlivesTheHost starts a grandchild that has left its session and ignores every signal that it can.
func TestNothingOutlivesTheHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec spec
		end  func(t *testing.T, host *os.Process)
		exit int // -1: killed
	}{
		"at the end of a good run":         {spec: spec{Touch: []string{"a"}}},
		"when the plugin crashes":          {spec: spec{Touch: []string{"a"}, Apply: "crash"}, exit: report.ExitFailed},
		"when the host gets SIGTERM":       {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGTERM), exit: report.ExitInterrupted},
		"when the host gets SIGINT":        {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGINT), exit: report.ExitInterrupted},
		"when the host's terminal is lost": {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGHUP), exit: report.ExitInterrupted},
		"when the host is killed":          {spec: spec{Touch: []string{"a"}, Apply: "hangForever"}, end: send(syscall.SIGKILL), exit: -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			child, witness := filepath.Join(b.dir, "child.pid"), filepath.Join(b.dir, "witness")
			b.install(binary, script{Child: child, Witness: witness})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // bounds a host that does not end
			defer cancel()
			c := b.command(ctx, "apply", "--root", b.root, "--path", b.stream(doc("a", tt.spec)))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.end != nil {
				eventually(t, "the change has begun", func() bool {
					data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
					return err == nil && strings.Contains(string(data), "file:a")
				})
				tt.end(t, c.Process)
			}
			_ = c.Wait() // the exit code is checked
			if c.ProcessState.ExitCode() != tt.exit {
				t.Errorf("exit %d, want %d", c.ProcessState.ExitCode(), tt.exit)
			}
			var plugin struct {
				PID json.Number `json:"pid"`
			}
			data, err := os.ReadFile(witness)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &plugin); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the plugin is gone", func() bool { return !alive(plugin.PID.String()) })
			// The child may have been killed before it could write its process ID: then it is gone too.
			if pid, err := os.ReadFile(child); err == nil && tt.exit >= 0 {
				eventually(t, "the plugin's child is gone", func() bool { return !alive(strings.TrimSpace(string(pid))) })
			}
			if tt.exit < 0 {
				b.endSurvivor(child)
			}
			eventually(t, "the lock is free", func() bool {
				return b.host("apply", "--root", b.root, "--path", b.stream(doc("a", spec{}))).code != report.ExitLocked
			})
		})
	}
}

// endSurvivor ends a child that is still alive after the host was killed: it holds the lock, and the next run names it.
func (b *bench) endSurvivor(pidFile string) {
	b.t.Helper()
	eventually(b.t, "the child says who it is", func() bool { _, err := os.Stat(pidFile); return err == nil })
	data, err := os.ReadFile(pidFile)
	require.NoError(b.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(b.t, err)
	got := b.host("apply", "--root", b.root, "--path", b.stream(doc("a", spec{})))
	require.Equal(b.t, report.ExitLocked, got.code, "%s", got)
	require.Contains(b.t, got.stderr, fmt.Sprintf("processes of a run that was killed are still at work: %d (/bin/sh -c ", pid))
	// It leads a session; its own child holds the lock as well. The command, because this file is vetted for Windows too.
	require.NoError(b.t, exec.CommandContext(b.t.Context(), "kill", "-KILL", "--", fmt.Sprint(-pid)).Run())
}

func send(s os.Signal) func(*testing.T, *os.Process) {
	return func(t *testing.T, p *os.Process) {
		t.Helper()
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPluginDoesNotIgnoreSIGPIPE: a signal that is ignored stays ignored in every program that is started, such as a daemon of a plugin.
func TestPluginDoesNotIgnoreSIGPIPE(t *testing.T) {
	needs.Linux(t)
	b := newBench(t)
	witness := filepath.Join(b.dir, "witness")
	plugin := "#!/bin/sh\ncat /proc/self/status >'" + witness + "'\n"
	require.NoError(t, needs.WriteProgram(filepath.Join(b.plugins, binary), []byte(plugin)))
	got := b.apply(doc("a", spec{}))
	require.Equal(t, report.ExitFailed, got.code, got.stderr)
	status, err := os.ReadFile(witness)
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(status), "SigIgn:\t")
	mask, err := strconv.ParseUint(strings.Fields(ignored)[0], 16, 64)
	require.NoError(t, err)
	require.Zero(t, mask&(1<<(syscall.SIGPIPE-1)), "SIGPIPE is ignored")
}

func TestPluginReceivesNothingOfTheHost(t *testing.T) {
	b := newBench(t)
	witness := filepath.Join(b.dir, "witness")
	b.install(binary, script{Witness: witness})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, "apply", "--root", b.root, "--path", b.stream(doc("a", spec{})))
	c.Env = []string{"HOME=/nowhere", "PATH=/evil", "CANARY=c4n4ry", "HTTPS_PROXY=http://user:c4n4ry@proxy.example:3128", "LD_PRELOAD="}
	c.Stdin = strings.NewReader("c4n4ry")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "c4n4ry") {
		t.Errorf("the plugin received data of the host: %s", data)
	}
	var seen struct {
		Args, Environ []string
		Stdin         string
	}
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Args) != 1 || seen.Stdin != "" {
		t.Errorf("arguments %q, stdin %q, want the path alone and nothing", seen.Args, seen.Stdin)
	}
	for _, variable := range seen.Environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "PLUGIN_"), name == "MACHINEADM_PLUGIN_COOKIE", name == "LANG", name == "HOME":
		case name == "PATH" && value == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin":
		case name == "HTTPS_PROXY" && value == "http://proxy.example:3128":
		default:
			t.Errorf("the plugin's environment has %s", variable)
		}
	}
}
