package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/proctree"
	"github.com/machineadm/machineadm/internal/trust"
)

const (
	// initHookPath is the program of an operating system whose PID 1 is not systemd.
	initHookPath = "/usr/libexec/machineadm/init-hook"
	// systemdBooted exists where systemd is PID 1 (sd_booted(3)).
	systemdBooted = "/run/systemd/system"
	hookTimeout   = 30 * time.Second
	// pipeGrace bounds the wait for output that a process in another control group still holds.
	pipeGrace = time.Second
)

// Verbs of the init hook.
const (
	HookReboot        = "reboot"
	HookResumeInstall = "resume-install" // the arguments are the command to run at every boot
	HookResumeRemove  = "resume-remove"
	HookMachineID     = "machine-id"
)

// InitHook is the open, trusted init hook of the operating system.
type InitHook struct {
	path        string
	file        *os.File // executed by every call
	environment []string
	timeout     time.Duration
}

// HookError reports a call of the init hook that failed.
type HookError struct {
	Call   string // path and verb
	Cause  error
	Output string // the end of its output, for details.json
}

// Error returns the call and the cause.
func (e *HookError) Error() string { return e.Call + ": " + e.Cause.Error() }

// Unwrap returns the cause.
func (e *HookError) Unwrap() error { return e.Cause }

// Hint returns what the operator can do.
func (e *HookError) Hint() string {
	if e.Output == "" {
		return "correct the init hook, then run again"
	}
	return "read the output of the init hook in details.json, correct it, then run again"
}

// OpenInitHook opens the init hook and checks its trust; an untrusted hook is a *trust.Error. It returns nil if there is no
// hook, and where systemd is PID 1.
func OpenInitHook(environment []string) (*InitHook, error) {
	if runtime.GOOS != "linux" {
		return nil, nil
	}
	return openInitHook(systemdBooted, initHookPath, environment)
}

func openInitHook(booted, path string, environment []string) (*InitHook, error) {
	if _, err := os.Lstat(booted); err == nil {
		return nil, nil
	}
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	file, err := trust.Open(path, trust.Program())
	if err != nil {
		return nil, err
	}
	return &InitHook{path: path, file: file, environment: environment, timeout: hookTimeout}, nil
}

// Close closes the file of the hook.
func (h *InitHook) Close() { _ = h.file.Close() } // opened for reading only

// Call runs the hook with a verb and returns its standard output. tree is that of this process, or nil if it has none. The
// processes that the hook leaves are killed. An error of the hook is a *HookError.
func (h *InitHook) Call(ctx context.Context, tree *proctree.Tree, verb string, arguments ...string) (_ string, err error) {
	if tree == nil {
		if tree, err = proctree.Contain(); err != nil {
			return "", err
		}
		defer func() {
			ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), orphanTimeout)
			defer cancel()
			err = errors.Join(err, tree.KillDescendants(ending))
		}()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("it did not end within %s", h.timeout))
	defer cancel()
	stdout, endStdout, err := capture()
	if err != nil {
		return "", err
	}
	stderr, endStderr, err := capture()
	if err != nil {
		endStdout()
		return "", err
	}
	failure := h.run(ctx, tree, proctree.Command{
		Path: h.path, Program: h.file, Environment: h.environment, Dir: "/", Stdout: stdout, Stderr: stderr,
		Arguments: append([]string{verb}, arguments...),
	})
	output, errorOutput := endStdout(), endStderr()
	if failure != nil {
		return "", &HookError{Call: h.path + " " + verb, Cause: failure, Output: output + errorOutput}
	}
	return output, nil
}

// run runs the command until it ends, or kills it when ctx does.
func (h *InitHook) run(ctx context.Context, tree *proctree.Tree, c proctree.Command) error {
	process, err := tree.Start(ctx, c)
	if err != nil {
		return missingInterpreter(h.file, h.environment, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = process.Kill() }) // Wait returns what happened
	defer stop()
	status, err := process.Wait()
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case status != 0:
		return fmt.Errorf("exit status %d", status)
	}
	return nil
}

// capture returns a pipe for a process, and a function that closes it and returns the end of what was written.
func capture() (w *os.File, end func() string, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	out, done := &stderr{log: slog.New(slog.DiscardHandler)}, make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(out, r) // the deadline
	}()
	return w, func() string {
		_ = w.Close()
		_ = r.SetReadDeadline(time.Now().Add(pipeGrace))
		<-done
		_ = r.Close()
		return out.Tail()
	}, nil
}

// MachineID returns the machine ID that the hook prints.
func (h *InitHook) MachineID(ctx context.Context) (string, error) {
	output, err := h.Call(ctx, nil, HookMachineID)
	if err != nil {
		return "", err
	}
	id := strings.TrimSuffix(output, "\n")
	if !regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString(id) {
		return "", &HookError{
			Call: h.path + " " + HookMachineID, Cause: errors.New("its output is not 32 hexadecimal digits in lower case"), Output: output,
		}
	}
	return id, nil
}
