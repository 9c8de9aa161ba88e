package pluginv1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
)

// processRunner is go-plugin's view of the process. go-plugin's own runner hands the host's stdin to the plugin; this
// one gives it /dev/null.
type processRunner struct {
	command        *exec.Cmd
	stdout, stderr io.ReadCloser
	terminate      func(*os.Process) error
	socketDir      string // where the plugin must listen; it was made for it, and nobody else can enter it

	waitOnce sync.Once
	waitErr  error
	mu       sync.Mutex
	started  bool
}

func (r *processRunner) prepare(command *exec.Cmd, env []string) error {
	command.Env = append(command.Env, env...)
	command.Stdin = nil // os/exec opens the null device
	var err error
	if r.stdout, err = command.StdoutPipe(); err != nil {
		return fmt.Errorf("make the pipe of stdout: %w", err)
	}
	if r.stderr, err = command.StderrPipe(); err != nil {
		return fmt.Errorf("make the pipe of stderr: %w", err)
	}
	r.command = command
	return nil
}

// Start implements runner.Runner.
func (r *processRunner) Start(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.command.Start(); err != nil {
		return fmt.Errorf("start the plugin: %w", err)
	}
	r.started = true
	return nil
}

// Wait implements runner.AttachedRunner.
func (r *processRunner) Wait(context.Context) error {
	r.waitOnce.Do(func() { r.waitErr = r.command.Wait() })
	return r.waitErr
}

// Kill implements runner.AttachedRunner. A process that is gone, or never was, is killed.
func (r *processRunner) Kill(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return nil
	}
	if err := r.terminate(r.command.Process); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("end the plugin: %w", err)
	}
	return nil
}

func (r *processRunner) pid() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return 0
	}
	return r.command.Process.Pid
}

// Stdout implements runner.Runner.
func (r *processRunner) Stdout() io.ReadCloser { return r.stdout }

// Stderr implements runner.Runner.
func (r *processRunner) Stderr() io.ReadCloser { return r.stderr }

// Name implements runner.Runner.
func (r *processRunner) Name() string { return r.command.Path }

// ID implements runner.AttachedRunner.
func (r *processRunner) ID() string { return strconv.Itoa(r.pid()) }

// Diagnose implements runner.Runner; it has nothing to add.
func (r *processRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.AttachedRunner: both sides share one namespace. A plugin that listens elsewhere than
// it was told to could be spoken to by others.
func (r *processRunner) PluginToHost(network, address string) (hostNet, hostAddr string, err error) {
	switch {
	case runtime.GOOS == "windows" && network == "tcp":
		return network, address, nil
	case runtime.GOOS != "windows" && network == "unix" && filepath.Dir(filepath.Clean(address)) == filepath.Clean(r.socketDir):
		return network, address, nil
	}
	return "", "", errElsewhere
}

var errElsewhere = errors.New("the plugin listens elsewhere than in PLUGIN_UNIX_SOCKET_DIR")

// HostToPlugin implements runner.AttachedRunner.
func (r *processRunner) HostToPlugin(network, address string) (pluginNet, pluginAddr string, err error) {
	return network, address, nil
}
