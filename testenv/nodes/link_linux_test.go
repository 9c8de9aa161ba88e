package nodes

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes/internal/agent"
	"github.com/machineadm/machineadm/testenv/nodes/internal/wire"
)

// linked returns a link to an agent that runs on this machine, in a control group that is removed like a node's.
func linked(t *testing.T, boot func(context.Context) error) (l *link, served <-chan error, far net.Conn) {
	t.Helper()
	require.Root(t)
	self, err := thisProcess()
	if err != nil {
		t.Fatal(err)
	}
	group, err := cgroupOf(newInstance(t.TempDir(), self).name)
	if err != nil {
		t.Fatal(err)
	}
	if err := group.make(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), teardownTimeout)
		defer cancel()
		if err := group.remove(ctx); err != nil {
			t.Error(err)
		}
	})
	near, file, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	if far, err = net.FileConn(file); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	a := &agent.Agent{Conn: wire.NewConn(far), Groups: string(group), Env: []string{"PATH=" + nodePath}, Boot: boot}
	result := make(chan error, 1)
	go func() { result <- a.Serve(t.Context()) }()
	l = newLink(near)
	t.Cleanup(func() {
		// Both may be closed by then, as some tests do.
		_, _ = l.close(), far.Close()
	})
	return l, result, far
}

func atOnce(context.Context) error { return nil }

func TestLinkRuns(t *testing.T) {
	t.Parallel()
	l, _, _ := linked(t, atOnce)
	for _, c := range []struct {
		name           string
		argv           []string
		stdin          string
		exit           int
		stdout, stderr string
	}{
		{"outputs", []string{"sh", "-c", "echo out; echo err >&2; exit 3"}, "", 3, "out\n", "err\n"},
		{"signal", []string{"sh", "-c", "kill -KILL $$"}, "", 137, "", ""},
		{"stdin", []string{"wc", "-c"}, strings.Repeat("x", 3<<20), 0, "3145728\n", ""},
		{"stdin is not read", []string{"true"}, strings.Repeat("x", 3<<20), 0, "", ""},
		{"a long argument", []string{"printf", strings.Repeat("y", 100_000)}, "", 0, strings.Repeat("y", 100_000), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			command := command{argv: c.argv, stdout: &stdout, stderr: &stderr}
			if c.stdin != "" {
				command.stdin = strings.NewReader(c.stdin)
			}
			exit, err := l.run(t.Context(), command)
			if err != nil || exit != c.exit || stdout.String() != c.stdout || stderr.String() != c.stderr {
				t.Errorf("exit %d, %v, stdout of %d bytes, stderr %q", exit, err, stdout.Len(), stderr.String())
			}
		})
	}
	t.Run("no such program", func(t *testing.T) {
		t.Parallel()
		var stderr bytes.Buffer
		if exit, err := l.run(t.Context(), command{argv: []string{"/no/such/program"}, stdout: &stderr, stderr: &stderr}); err != nil || exit != 127 || stderr.Len() == 0 {
			t.Errorf("exit %d, %v, %q", exit, err, stderr.String())
		}
	})
	t.Run("too long an argument", func(t *testing.T) {
		t.Parallel()
		var out bytes.Buffer
		if exit, err := l.run(t.Context(), command{argv: []string{"true", strings.Repeat("z", 8<<20)}, stdout: &out, stderr: &out}); err == nil {
			t.Errorf("exit %d", exit)
		}
	})
}

func TestLinkReportsTheBoot(t *testing.T) {
	t.Parallel()
	finish := make(chan struct{})
	l, _, _ := linked(t, func(context.Context) error { <-finish; return nil })
	<-l.hello
	if closed(l.up) {
		t.Error("up before the boot is finished")
	}
	close(finish)
	<-l.up
}

// An agent that cannot tell when the boot is finished ends, and the machine with it.
func TestAgentEndsWhenItCannotFollowTheBoot(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	_, served, _ := linked(t, func(context.Context) error { return broken })
	if err := <-served; !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// A machine that ends also ends its commands.
func TestLinkEnds(t *testing.T) {
	t.Parallel()
	l, served, far := linked(t, atOnce)
	ended := make(chan error)
	var out bytes.Buffer
	go func() {
		_, err := l.run(t.Context(), command{argv: []string{"sleep", "600"}, stdout: &out, stderr: &out})
		ended <- err
	}()
	<-l.up
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, errOff) {
		t.Errorf("error %v", err)
	}
	if err := <-served; err == nil {
		t.Error("the agent ended as if nothing had happened")
	}
	if _, err := l.run(t.Context(), command{argv: []string{"true"}, stdout: &out, stderr: &out}); !errors.Is(err, errOff) {
		t.Errorf("a command afterwards: error %v", err)
	}
}

// A machine that hangs does not hang the test: the context counts, also while what is sent is not read.
func TestLinkToAMachineThatHangs(t *testing.T) {
	t.Parallel()
	near, far, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	l := newLink(near)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	var out bytes.Buffer
	go func() {
		_, err := l.run(ctx, command{argv: []string{"cat"}, stdin: strings.NewReader(strings.Repeat("x", 8<<20)), stdout: &out, stderr: &out})
		ended <- err
	}()
	cancel()
	// It would wait for the machine to confirm; that ends when the power is cut.
	select {
	case err := <-ended:
		t.Errorf("given up at once: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := far.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, context.Canceled) && !errors.Is(err, errOff) {
		t.Errorf("error %v", err)
	}
	if err := l.close(); err != nil && !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestSawReset(t *testing.T) {
	t.Parallel()
	const greeting = `{"QMP": {"version": {}, "capabilities": []}}` + "\r\n" + `{"return": {}}` + "\r\n"
	for name, c := range map[string]struct {
		said string
		want bool
	}{
		"reset":      {greeting + `{"event": "RESET", "data": {"guest": true}}` + "\r\n" + `{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-reset"}}` + "\r\n", true},
		"power off":  {greeting + `{"event": "POWERDOWN"}` + `{"event": "SHUTDOWN", "data": {"guest": true, "reason": "guest-shutdown"}}`, false},
		"killed":     {greeting, false},
		"cut off":    {greeting + `{"event": "SHUT`, false},
		"never was":  {"", false},
		"no monitor": {"qemu: error", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := sawReset(bytes.NewBufferString(c.said)); got != c.want {
				t.Errorf("reset: %v, want %v", got, c.want)
			}
		})
	}
}
