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
	"time"
)

// Program is how Launch starts a plugin and ends it, for a host that has its own way with processes.
type Program interface {
	// Start starts it with this environment, the null device as stdin, and the given ends of pipes as stdout and stderr,
	// which Launch closes afterwards. It is called once, and gives up when ctx ends, which is of no account afterwards.
	Start(ctx context.Context, environment []string, stdout, stderr *os.File) error
	// Wait returns when it is gone, and Kill ends it; neither is called before Start has succeeded. Both may be called
	// more than once, and at once. To kill what is gone is no error.
	Wait() error
	Kill() error
	// PID is its process ID.
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

// processRunner is go-plugin's view of the process. go-plugin's own runner hands the host's stdin to the plugin; this
// one gives it /dev/null.
type processRunner struct {
	program        Program
	environment    []string
	stdout, stderr *os.File // our ends of the pipes
	socketDir      string   // where the plugin must listen; it was made for it, and nobody else can enter it

	mu      sync.Mutex
	started bool
	killed  bool // also before it was started
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

// pipeWait is how long output is waited for after the plugin itself has ended: a process that it left may keep the pipes.
const pipeWait = 2 * time.Second

// drain gives up the pipes of a plugin that has ended: go-plugin reads them to their ends before it calls Wait.
func (r *processRunner) drain() {
	_ = r.program.Wait()                                                               // its status is that of Wait below
	time.AfterFunc(pipeWait, func() { _ = closeAll([2]*os.File{r.stdout, r.stderr}) }) // closed by Wait as a rule
}

// room says why the plugin could not make its socket, where the directory takes no file. A plugin that ends says this on
// its stderr alone.
func (r *processRunner) room() error {
	if r.socketDir == "" { // it was not made
		return nil
	}
	file, err := os.CreateTemp(r.socketDir, "")
	if err != nil {
		return fmt.Errorf("no room for its socket: %w", err)
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}

// pipes makes two.
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

// Wait implements runner.AttachedRunner. It is called when stdout and stderr are read to their ends.
func (r *processRunner) Wait(context.Context) error {
	err := r.program.Wait()
	_, _ = r.stdout.Close(), r.stderr.Close() // only read from
	return err
}

// Kill implements runner.AttachedRunner. A process that is gone, or never was, is killed.
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
