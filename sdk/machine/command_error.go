package machine

import (
	"errors"
	"fmt"
)

// ErrTimeout reports that a command was ended because its own timeout passed. When the caller's context ended first, the
// error is the context's.
var ErrTimeout = errors.New("timed out")

// CommandError is a command that did not start, failed or was ended. It never holds arguments, environment or input, which
// can be secrets.
type CommandError struct {
	// Name is the program, without directory.
	Name string
	// ExitCode is the exit code of the program; -1 when a signal ended it or it did not start.
	ExitCode int
	// Signal is the signal that ended the program, named as in signal(7) without SIG; empty when none did.
	Signal string
	// Stderr is the end of the error output, at most 4 KiB, with control characters other than line feeds and tabs
	// escaped. It can contain secrets, so Error leaves it out: only the administrator may see it.
	Stderr string
	// Stdout is the end of the output, in the same form.
	Stdout string
	// Err is why the program was ended or did not start, nil when it failed by itself.
	Err error
}

// Error returns the program and how it ended, without its output.
func (e *CommandError) Error() string {
	name := printable(e.Name)
	switch {
	case e.Err != nil:
		return fmt.Sprintf("%s: %v", name, e.Err)
	case e.Signal != "":
		return fmt.Sprintf("%s: ended by signal %s", name, e.Signal)
	default:
		return fmt.Sprintf("%s: exit code %d", name, e.ExitCode)
	}
}

func (e *CommandError) Unwrap() error { return e.Err }
