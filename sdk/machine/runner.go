package machine

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// DefaultTimeout is how long a command may take that names no timeout of its own.
	DefaultTimeout = 2 * time.Minute
	// MaxOutputBytes is how much of each output stream is kept.
	MaxOutputBytes = 1 << 20
	// pipeWait is how long output is waited for after the command itself has ended. Only a process that left the
	// command's process group can make us wait: a daemon that kept the pipe.
	pipeWait = 2 * time.Second
)

// Command is a program and its arguments. No shell reads them. Secrets belong in Stdin: arguments and environment
// can be read by others.
type Command struct {
	// Name is a file name without directory, looked for in the system's command directories.
	Name string
	Args []string
	// Directory is the only one in which the program is looked for, by its absolute path; empty means the system's command
	// directories. It is for a program that others of the same name could hide.
	Directory string
	// Stdin is what the command reads; nil is the null device.
	Stdin []byte
	// Env adds KEY=value to, or replaces in, the environment of commands: PATH, HOME, LANG and the proxies, nothing
	// else of this process's own.
	Env []string
	// Timeout limits the run; zero means DefaultTimeout.
	Timeout time.Duration
	// OK lists exit codes that are no error, besides 0.
	OK []int
	// Dir is the working directory, as this process names it; empty is / (Windows: that of the program).
	Dir string
	// Output is given each line of both output streams as it comes, one at a time, at most 4 KiB long and with control
	// characters escaped, for progress. They are another program's text. Nil drops them; Result has them all the same.
	Output func(line string)
	// Grace is how long the command may take to end by itself when its time is over: its process group is sent SIGTERM,
	// and killed after the grace. 0 kills at once, and so does Windows.
	Grace time.Duration
}

// Result is what a command said. It is filled as far as it goes when there is an error, too.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int
	// Truncated says that output is missing: beyond MaxOutputBytes, or written by a process that the command left.
	Truncated bool
}

// Runner runs programs.
type Runner interface {
	// Run starts the command and waits for its end. The command and what it started are killed when ctx or the
	// timeout ends, and what it leaves in its process group is killed when it ends; on Linux the command itself dies
	// with this process, on Windows everything that it started does as well. A command that fails is a *CommandError.
	Run(ctx context.Context, c Command) (Result, error)
	// Find returns the path of a program; fs.ErrNotExist when the machine has none of this name.
	Find(name string) (string, error)
}

type runner struct {
	directories []string
	environment []string
}

// NewRunner returns the Runner of the live machine. Programs are looked for in these directories, in order; without
// any, in those of the operating system (on Linux /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin).
func NewRunner(directories ...string) Runner {
	if len(directories) == 0 {
		directories = commandDirectories()
	}
	environment := append(baseEnvironment(),
		"PATH="+strings.Join(directories, string(os.PathListSeparator)), "LANG=C.UTF-8")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"} {
		if value, ok := os.LookupEnv(name); ok {
			environment = append(environment, name+"="+value)
		}
	}
	return &runner{directories: slices.Clone(directories), environment: environment}
}

// Find implements Runner.
func (r *runner) Find(name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || filepath.Base(name) != name {
		return "", fmt.Errorf("find %s: %w: a program is named without a directory", printable(name), fs.ErrInvalid)
	}
	var unknown error // says more than that no directory has it
	for _, directory := range r.directories {
		for _, suffix := range programSuffixes() {
			path := filepath.Join(directory, name+suffix)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && isProgram(info) {
				return path, nil
			}
			if err != nil && unknown == nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) {
				unknown = err
			}
		}
	}
	if unknown != nil {
		return "", fmt.Errorf("find %s: %w", printable(name), unknown)
	}
	return "", fmt.Errorf("find %s: %w: no such program in %s", printable(name), fs.ErrNotExist,
		strings.Join(r.directories, string(os.PathListSeparator)))
}

// path is where the program of a command is.
func (r *runner) path(c Command) (string, error) {
	switch {
	case c.Directory == "":
		return r.Find(c.Name)
	case !filepath.IsAbs(c.Directory):
		return "", fmt.Errorf("find %s: %w: its directory is not an absolute path", printable(c.Name), fs.ErrInvalid)
	}
	only := &runner{directories: []string{c.Directory}}
	return only.Find(c.Name)
}

// Run implements Runner.
func (r *runner) Run(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil { // a command that is quicker than its end would succeed
		return Result{ExitCode: -1}, err
	}
	path, err := r.path(c)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %v", ErrTimeout, timeout))
	defer cancel()
	hard, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	end := &ending{grace: c.Grace, kill: kill}
	defer context.AfterFunc(limited, end.begin)()
	var stdout, stderr capture
	cmd := exec.CommandContext(hard, path, c.Args...)
	cmd.Dir = cmp.Or(c.Dir, workingDirectory(path))
	cmd.Env = slices.Concat(r.environment, c.Env)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = pipeWait
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	if c.Output != nil {
		var one sync.Mutex
		first, second := &lines{mutex: &one, line: c.Output}, &lines{mutex: &one, line: c.Output}
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, first), io.MultiWriter(&stderr, second)
		defer func() { first.end(); second.end() }()
	}
	err = runGroup(cmd, end)
	result := Result{
		Stdout: stdout.head, Stderr: stderr.head, ExitCode: -1,
		Truncated: stdout.cut() || stderr.cut() || errors.Is(err, exec.ErrWaitDelay),
	}
	state := cmd.ProcessState
	if state == nil {
		if cause := ended(ctx, limited); cause != nil {
			return result, &CommandError{Name: c.Name, ExitCode: -1, Err: cause}
		}
		return result, &CommandError{Name: c.Name, ExitCode: -1, Err: startError(err)}
	}
	result.ExitCode = state.ExitCode()
	failure := &CommandError{
		Name: c.Name, ExitCode: result.ExitCode, Signal: signalOf(state),
		Stderr: stderr.end(), Stdout: stdout.end(), Err: ioError(err),
	}
	if wasKilled(state) || end.wasAsked() {
		failure.Err = ended(ctx, limited)
	} else if failure.Err == nil && (result.ExitCode == 0 || slices.Contains(c.OK, result.ExitCode)) {
		return result, nil
	}
	return result, failure
}

// ended says why a command was ended from outside: the caller's context, or its own time. Nil when neither is over.
func ended(ctx, limited context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return context.Cause(limited)
}

// startError gives the operating system's reason without the path around it.
func startError(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		err = inner.Err
	}
	return fmt.Errorf("it does not start: %w", err)
}

// ioError picks what went wrong around a command that ended by itself.
func ioError(err error) error {
	_, exited := errors.AsType[*exec.ExitError](err)
	if exited || errors.Is(err, exec.ErrWaitDelay) || errors.Is(err, context.Canceled) ||
		errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}
