// Package machinetest has helpers for the tests of a plugin: a machine in a temporary directory with scripted programs,
// services and kernel, and a comparison of directory trees.
package machinetest

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/machineadm/machineadm/sdk/machine"
)

// Runner returns scripted results. A command without one fails the test. NewRunner creates it; several goroutines may use it.
type Runner struct {
	t       testing.TB
	mutex   sync.Mutex
	answers []answer
	absent  []string
	calls   []machine.Command
}

type answer struct {
	line string
	do   func(context.Context, machine.Command) (machine.Result, error)
}

// NewRunner returns a Runner with an empty script.
func NewRunner(t testing.TB) *Runner { return &Runner{t: t} }

// On sets the result of a command line, the program and its arguments joined by single spaces. A line that ends in "..."
// matches every command with this prefix. The last match applies. Exit codes other than 0 that the command does not expect
// become a *machine.CommandError, as on a real machine.
func (r *Runner) On(line string, result machine.Result) {
	r.OnFunc(line, func(context.Context, machine.Command) (machine.Result, error) { return result, nil })
}

// OnFunc is On with a function that returns the result.
func (r *Runner) OnFunc(line string, do func(context.Context, machine.Command) (machine.Result, error)) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.answers = append(r.answers, answer{line: line, do: do})
}

// Absent removes programs from Find and Run.
func (r *Runner) Absent(names ...string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.absent = append(r.absent, names...)
}

// Calls returns the commands so far, in order.
func (r *Runner) Calls() []machine.Command {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.calls)
}

// Lines returns the command lines so far, in order.
func (r *Runner) Lines() []string {
	var lines []string
	for _, call := range r.Calls() {
		lines = append(lines, commandLine(call))
	}
	return lines
}

func commandLine(c machine.Command) string {
	return strings.Join(append([]string{c.Name}, c.Args...), " ")
}

// Find implements machine.Runner: every program with a result is installed, unless Absent removed it.
func (r *Runner) Find(name string) (string, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	known := slices.ContainsFunc(r.answers, func(a answer) bool {
		program, _, _ := strings.Cut(strings.TrimSuffix(a.line, "..."), " ")
		return program == name
	})
	if !known || slices.Contains(r.absent, name) {
		return "", fmt.Errorf("find %s: %w", name, fs.ErrNotExist)
	}
	return "/usr/bin/" + name, nil
}

// Run implements machine.Runner.
func (r *Runner) Run(ctx context.Context, c machine.Command) (machine.Result, error) {
	if err := ctx.Err(); err != nil {
		return machine.Result{ExitCode: -1}, &machine.CommandError{Name: c.Name, ExitCode: -1, Err: err}
	}
	do, err := r.record(c)
	if err != nil {
		return machine.Result{ExitCode: -1}, err
	}
	result, err := do(ctx, c)
	if c.Output != nil {
		for line := range strings.Lines(string(result.Stdout) + string(result.Stderr)) {
			c.Output(strings.TrimRight(line, "\n"))
		}
	}
	if err == nil && result.ExitCode != 0 && !slices.Contains(c.OK, result.ExitCode) {
		err = &machine.CommandError{Name: c.Name, ExitCode: result.ExitCode, Stderr: string(result.Stderr), Stdout: string(result.Stdout)}
	}
	return result, err
}

// record records the call and finds its result. The function runs without the lock, so it may use the Runner.
func (r *Runner) record(c machine.Command) (func(context.Context, machine.Command) (machine.Result, error), error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.calls = append(r.calls, c)
	if slices.Contains(r.absent, c.Name) {
		return nil, fmt.Errorf("find %s: %w", c.Name, fs.ErrNotExist)
	}
	line := commandLine(c)
	for _, a := range slices.Backward(r.answers) {
		prefix, open := strings.CutSuffix(a.line, "...")
		if line == a.line || open && strings.HasPrefix(line, prefix) {
			return a.do, nil
		}
	}
	r.t.Errorf("machinetest: no result is scripted for the command %q", line)
	return nil, &machine.CommandError{Name: c.Name, ExitCode: -1, Err: fmt.Errorf("not scripted")}
}
