package launch

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
	"time"
)

// Program starts and ends a plugin process, for a runtime with its own process management.
type Program interface {
	// Start starts the process with this environment, the null device as stdin, and the given ends of pipes as stdout and
	// stderr, which the caller closes afterwards. It is called once. The end of ctx ends Start, but not the process.
	Start(ctx context.Context, environment []string, stdout, stderr *os.File) error
	// Wait returns when the process has ended, and Kill ends it. Neither is called before Start has succeeded; both may be
	// called repeatedly and concurrently. Kill of a process that has ended is no error.
	Wait() error
	Kill() error
	// PID is the process ID.
	PID() int
}

// command is an exec.Cmd as a Program.
type command struct {
	cmd  *exec.Cmd
	once sync.Once
	err  error
}

// Start implements Program.
func (c *command) Start(_ context.Context, environment []string, stdout, stderr *os.File) error {
	c.cmd.Env = environment
	c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = nil, stdout, stderr // os/exec opens the null device
	return c.cmd.Start()
}

// Wait implements Program.
func (c *command) Wait() error {
	c.once.Do(func() { c.err = c.cmd.Wait() })
	return c.err
}

// Kill implements Program.
func (c *command) Kill() error {
	if err := c.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// PID implements Program.
func (c *command) PID() int { return c.cmd.Process.Pid }

// processRunner implements go-plugin's runner. go-plugin's own runner passes the runtime's stdin to the plugin; this one
// passes /dev/null.
type processRunner struct {
	program        Program
	environment    []string
	stdout, stderr *os.File // this process's ends of the pipes
	socketDir      string   // where the plugin must listen; no other user can enter it

	mu      sync.Mutex
	started bool
	killed  bool // also before the start
}

// Start implements runner.Runner.
func (r *processRunner) Start(ctx context.Context) error {
	ours, theirs, err := pipes()
	if err != nil {
		return fmt.Errorf("make the pipes of its standard output and standard error: %w", err)
	}
	err = r.program.Start(ctx, r.environment, theirs[0], theirs[1])
	if err != nil {
		return errors.Join(fmt.Errorf("start the plugin: %w", err), closeAll(theirs), closeAll(ours))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stdout, r.stderr, r.started = ours[0], ours[1], true
	go r.drain()
	err = closeAll(theirs)
	if r.killed {
		err = errors.Join(err, r.program.Kill())
	}
	return err
}

// pipeWait limits the reading of output after the plugin has ended: a child process of it may keep the pipes open.
const pipeWait = 2 * time.Second

// drain closes the pipes of a plugin that has ended: go-plugin reads them to their ends before it calls Wait.
func (r *processRunner) drain() {
	_ = r.program.Wait()                                                               // Wait below returns the same error
	time.AfterFunc(pipeWait, func() { _ = closeAll([2]*os.File{r.stdout, r.stderr}) }) // Wait has usually closed them
}

// closeAfter ends the calls of a plugin that has ended: a child process of it may keep the connection open, and no call would
// return before its limit.
func (r *processRunner) closeAfter(connection io.Closer) {
	_ = r.program.Wait()                                        // Wait below returns the same error
	time.AfterFunc(pipeWait, func() { _ = connection.Close() }) // go-plugin has usually closed it
}

// room returns the reason why no file can be made in the directory of the socket; the plugin reports it on its stderr
// alone.
func (r *processRunner) room() error {
	if r.socketDir == "" {
		return nil
	}
	file, err := os.CreateTemp(r.socketDir, "")
	if err != nil {
		return fmt.Errorf("no room for its socket: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// pipes makes the pipes of standard output and standard error.
func pipes() (ours, theirs [2]*os.File, err error) {
	if ours[0], theirs[0], err = os.Pipe(); err != nil {
		return ours, theirs, err
	}
	if ours[1], theirs[1], err = os.Pipe(); err != nil {
		return ours, theirs, errors.Join(err, ours[0].Close(), theirs[0].Close())
	}
	return ours, theirs, nil
}

func closeAll(files [2]*os.File) error { return errors.Join(files[0].Close(), files[1].Close()) }

// Wait implements runner.AttachedRunner. go-plugin calls it when stdout and stderr are read to their ends.
func (r *processRunner) Wait(context.Context) error {
	err := r.program.Wait()
	_, _ = r.stdout.Close(), r.stderr.Close() // only read from
	return err
}

// Kill implements runner.AttachedRunner. It succeeds for a process that has ended or never started.
func (r *processRunner) Kill(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.killed = true
	if !r.started {
		return nil
	}
	if err := r.program.Kill(); err != nil {
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
	return r.program.PID()
}

// Stdout implements runner.Runner.
func (r *processRunner) Stdout() io.ReadCloser { return r.stdout }

// Stderr implements runner.Runner.
func (r *processRunner) Stderr() io.ReadCloser { return r.stderr }

// Name implements runner.Runner.
func (r *processRunner) Name() string { return "plugin" }

// ID implements runner.AttachedRunner.
func (r *processRunner) ID() string { return strconv.Itoa(r.pid()) }

// Diagnose implements runner.Runner.
func (r *processRunner) Diagnose(context.Context) string { return "" }

// PluginToHost implements runner.AttachedRunner: both sides share one namespace. It refuses any other directory than that
// of SocketDir, which other users might enter.
func (r *processRunner) PluginToHost(network, address string) (hostNet, hostAddr string, err error) {
	switch {
	case runtime.GOOS == "windows" && network == "tcp":
		return network, address, nil
	case runtime.GOOS != "windows" && network == "unix" && filepath.Dir(filepath.Clean(address)) == filepath.Clean(r.socketDir):
		return network, address, nil
	}
	return "", "", errElsewhere
}

// HostToPlugin implements runner.AttachedRunner.
func (r *processRunner) HostToPlugin(network, address string) (pluginNet, pluginAddr string, err error) {
	return network, address, nil
}
