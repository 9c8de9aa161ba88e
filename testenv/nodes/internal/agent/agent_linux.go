// Package agent runs commands inside a virtual machine for the test that booted it.
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/testenv/nodes/internal/wire"
)

// Agent serves one connection.
type Agent struct {
	Conn *wire.Conn
	// Groups is the directory of the unified control group hierarchy in which each command gets a group.
	Groups string
	// Env is the whole environment of the commands.
	Env []string
	// Boot returns when the boot is finished; an error ends the agent.
	Boot func(context.Context) error
}

// outputGrace is how long a command's children may hold its outputs after it ended.
const outputGrace = 2 * time.Second

// killGrace is how long killed processes may take to end.
const killGrace = 5 * time.Second

// Serve returns at the end of the connection. It never blocks on a command.
func (a *Agent) Serve(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if err := a.Conn.Send(wire.Frame{Kind: wire.Hello}); err != nil {
		return err
	}
	go func() {
		err := a.Boot(ctx)
		if err == nil {
			err = a.Conn.Send(wire.Frame{Kind: wire.Up})
		}
		if err != nil {
			cancel(err)
		}
	}()
	received := make(chan error, 1)
	go func() { received <- a.receive(ctx) }()
	select {
	case err := <-received:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// call is a command that runs.
type call struct {
	id     uint32
	cancel context.CancelFunc
	stdin  chan []byte
}

func (a *Agent) receive(ctx context.Context) error {
	var mu sync.Mutex
	calls := map[uint32]*call{}
	for {
		f, err := a.Conn.Receive()
		if err != nil {
			return err
		}
		mu.Lock()
		c := calls[f.Call]
		mu.Unlock()
		switch {
		case f.Kind == wire.Start:
			var command wire.Command
			if err := json.Unmarshal(f.Payload, &command); err != nil {
				return fmt.Errorf("read a command: %w", err)
			}
			ctx, cancel := context.WithCancel(ctx)
			c := &call{id: f.Call, cancel: cancel, stdin: make(chan []byte, wire.Window)}
			mu.Lock()
			calls[c.id] = c
			mu.Unlock()
			go func() {
				defer cancel()
				last := a.run(ctx, c, command)
				mu.Lock()
				delete(calls, c.id)
				mu.Unlock()
				// Without the connection there is nobody to tell, and Serve returns.
				_ = a.Conn.Send(last)
			}()
		case c == nil: // it ended meanwhile
		case f.Kind == wire.Stdin:
			c.stdin <- f.Payload // there is room, see wire.Window
		case f.Kind == wire.StdinEnd:
			close(c.stdin)
		case f.Kind == wire.Kill:
			c.cancel()
		}
	}
}

// run returns the last frame of the command.
func (a *Agent) run(ctx context.Context, c *call, command wire.Command) wire.Frame {
	exit, err := a.follow(ctx, c, command)
	if err != nil {
		return wire.Frame{Kind: wire.Failed, Call: c.id, Payload: []byte(err.Error())}
	}
	return wire.Frame{Kind: wire.Exit, Call: c.id, Payload: []byte(strconv.Itoa(exit))}
}

func (a *Agent) follow(ctx context.Context, c *call, command wire.Command) (exit int, err error) {
	group := filepath.Join(a.Groups, fmt.Sprintf("testenv-exec-%d", c.id))
	if err := os.Mkdir(group, 0o755); err != nil {
		return 0, err
	}
	// A group that still has children of the command stays, and goes with the machine.
	defer os.Remove(group) //nolint:errcheck // see above
	dir, err := os.Open(group)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()

	cmd := exec.CommandContext(ctx, command.Argv[0], command.Argv[1:]...)
	cmd.Env = a.Env
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = a.Conn.Stream(wire.Stdout, c.id), a.Conn.Stream(wire.Stderr, c.id)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(dir.Fd())}
	cmd.Cancel = func() error { return kill(group) }
	cmd.WaitDelay = outputGrace
	var stdin io.WriteCloser
	if command.Stdin {
		if stdin, err = cmd.StdinPipe(); err != nil {
			return 0, err
		}
	}
	if err := cmd.Start(); err != nil {
		return a.notStarted(c, err)
	}
	ended := make(chan struct{})
	if stdin != nil {
		go a.feed(c, stdin, ended)
	}
	err = cmd.Wait()
	close(ended)
	if ctx.Err() != nil {
		return 0, errors.Join(context.Cause(ctx), empty(group))
	}
	return status(err)
}

func status(err error) (int, error) {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, nil
	case errors.Is(err, exec.ErrWaitDelay):
		return 0, fmt.Errorf("it ended, but left a process that holds its stdout or stderr: %w", err)
	case !errors.As(err, &exit):
		return 0, err
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return exit.ExitCode(), nil
}

// notStarted returns the exit code of a shell for a program that is missing or cannot be executed.
func (a *Agent) notStarted(c *call, cause error) (int, error) {
	var exit int
	switch {
	case errors.Is(cause, exec.ErrNotFound), errors.Is(cause, fs.ErrNotExist):
		exit = 127
	case errors.Is(cause, fs.ErrPermission):
		exit = 126
	default:
		return 0, cause
	}
	_, err := fmt.Fprintln(a.Conn.Stream(wire.Stderr, c.id), cause)
	return exit, err
}

// feed passes stdin on until it ends, or the command does; a command need not read all of it.
func (a *Agent) feed(c *call, stdin io.WriteCloser, ended <-chan struct{}) {
	defer stdin.Close() //nolint:errcheck // a pipe, that the end of the command closes as well
	for {
		select {
		case <-ended:
			return
		case piece, more := <-c.stdin:
			if !more {
				return
			}
			if _, err := stdin.Write(piece); err != nil {
				return
			}
			if err := a.Conn.Send(wire.Frame{Kind: wire.Taken, Call: c.id}); err != nil {
				return
			}
		}
	}
}

// kill ends every process of the group and below, at once.
func kill(group string) error {
	return os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0)
}

// empty waits until a killed group has no processes.
func empty(group string) error {
	for deadline := time.Now().Add(killGrace); ; time.Sleep(10 * time.Millisecond) {
		pids, err := os.ReadFile(filepath.Join(group, "cgroup.procs"))
		switch {
		case err != nil:
			return err
		case len(pids) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("its processes are still there %s after they were killed", killGrace)
		}
	}
}
