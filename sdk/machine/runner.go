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
	"time"
)

const (
	// DefaultTimeout applies to a command without a Timeout.
	DefaultTimeout = 2 * time.Minute
	// pipeWait bounds the wait for the end of the output after the command has ended. Only a process that left the
	// command's process group, such as a daemon, can still hold the pipe.
	pipeWait = 2 * time.Second
)

// Command is a program and its arguments, started without a shell. Secrets belong in Stdin: others can read arguments and
// environment.
type Command struct {
	// Name is a file name without directory, searched for in the system's command directories.
	Name string
	Args []string
	// Directory, an absolute path, replaces the system's command directories, for a program that another one of the same
	// name could hide.
	Directory string
	// Stdin is the input; nil is the null device.
	Stdin []byte
	// Env adds KEY=value to the environment of commands, or replaces it there: PATH, HOME, LANG and the proxies. Nothing
	// else of this process's environment is passed on.
	Env []string
	// Timeout limits the run; zero means DefaultTimeout.
	Timeout time.Duration
	// OK lists exit codes other than 0 that are no error.
	OK []int
	// Dir is the working directory, a path of this process; empty is / (Windows: the directory of the program).
	Dir string
	// Output receives each line of both output streams as it arrives, one at a time, at most 4 KiB long and with control
	// characters escaped. The lines can contain secrets. Result has them as well.
	Output func(line string)
	// Grace is the time between SIGTERM and SIGKILL for the process group of a command that is ended. 0 sends SIGKILL at
	// once. Windows: ignored.
	Grace time.Duration
	// Starts means that the command starts a service, in a control group of its own. What is left of the process group when the command has
	// ended is not killed then: a daemon leaves the group of its parent only after that has ended. Windows: ignored.
	Starts bool
	// Constant means that the program and the arguments alone decide about the result, as they do about that of --version. See Answers.
	Constant bool
}

// Result is the output of a command and its exit code, as far as there is one when Run returns an error.
type Result struct {
	Stdout, Stderr []byte
	ExitCode       int
	// Truncated reports that output is missing: beyond MaxOutputBytes, or written by a process that outlived the command.
	Truncated bool
}

// Runner runs programs.
type Runner interface {
	// Run starts the command and waits for its end. When ctx or the timeout ends, the command and its children are killed,
	// and when the command ends, its process group, unless it starts a service. On Linux the command dies with this process, on Windows all its
	// children as well. A command that fails is a *CommandError.
	Run(ctx context.Context, c Command) (Result, error)
	// Find returns the path of a program; fs.ErrNotExist when the machine has none of this name.
	Find(name string) (string, error)
}

type runner struct {
	directories []string
	environment []string
}

// NewRunner returns the Runner of the live machine. It searches these directories, in order, or by default the directories of the
// operating system (on Linux /usr/local/sbin, /usr/local/bin, /usr/sbin, /usr/bin, /sbin, /bin).
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
func (r *runner) Find(name string) (string, error) { return find(r.directories, name) }

func find(directories []string, name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") || filepath.Base(name) != name {
		return "", fmt.Errorf("find %s: %w: a program is named without a directory", printable(name), fs.ErrInvalid)
	}
	var failed error
	for _, directory := range directories {
		if !filepath.IsAbs(directory) {
			return "", fmt.Errorf("find %s: %w: its directory is not an absolute path", printable(name), fs.ErrInvalid)
		}
		for _, suffix := range programSuffixes() {
			path := filepath.Join(directory, name+suffix)
			info, err := os.Stat(path)
			if err == nil && info.Mode().IsRegular() && isProgram(info) {
				return path, nil
			}
			if failed == nil && !isAbsent(err) {
				failed = err
			}
		}
	}
	if failed == nil {
		failed = fmt.Errorf("%w: no such program in %s", fs.ErrNotExist, strings.Join(directories, string(os.PathListSeparator)))
	}
	return "", fmt.Errorf("find %s: %w", printable(name), failed)
}

// Run implements Runner.
func (r *runner) Run(ctx context.Context, c Command) (Result, error) {
	if err := ctx.Err(); err != nil { // a short command would still succeed
		return Result{ExitCode: -1}, err
	}
	directories := r.directories
	if c.Directory != "" {
		directories = []string{c.Directory}
	}
	path, err := find(directories, c.Name)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = DefaultTimeout
	}
	limited, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("%w after %v", ErrTimeout, timeout))
	defer cancel()
	var stdout, stderr capture
	cmd := &exec.Cmd{
		Path: path, Args: append([]string{path}, c.Args...), Dir: cmp.Or(c.Dir, workingDirectory(path)),
		Env: slices.Concat(r.environment, c.Env), Stdout: &stdout, Stderr: &stderr, WaitDelay: pipeWait,
	}
	if c.Stdin != nil {
		cmd.Stdin = bytes.NewReader(c.Stdin)
	}
	if c.Output != nil {
		var mutex sync.Mutex
		out, errs := &lineWriter{mutex: &mutex, line: c.Output}, &lineWriter{mutex: &mutex, line: c.Output}
		cmd.Stdout, cmd.Stderr = io.MultiWriter(&stdout, out), io.MultiWriter(&stderr, errs)
		defer func() { out.end(); errs.end() }()
	}
	terminated, err := runGroup(limited, cmd, c.Grace, c.Starts)
	result := Result{
		Stdout: stdout.head, Stderr: stderr.head, ExitCode: -1,
		Truncated: stdout.truncated() || stderr.truncated() || errors.Is(err, exec.ErrWaitDelay),
	}
	state := cmd.ProcessState
	if state == nil {
		return result, &CommandError{Name: c.Name, ExitCode: -1, Err: fmt.Errorf("it does not start: %w", withoutPath(err))}
	}
	result.ExitCode = state.ExitCode()
	failure := &CommandError{
		Name: c.Name, ExitCode: result.ExitCode, Signal: signalOf(state), Stderr: stderr.end(), Stdout: stdout.end(),
	}
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case terminated || wasKilled(state):
		failure.Err = cmp.Or(ctx.Err(), context.Cause(limited)) // nil when another process killed it
	case !exited && err != nil && !errors.Is(err, exec.ErrWaitDelay):
		failure.Err = err
	case result.ExitCode == 0 || slices.Contains(c.OK, result.ExitCode):
		return result, nil
	}
	return result, failure
}
