package launch

import (
	"context"
	"errors"
	"os"
	"testing"
)

// program is a Program without a process.
type program struct {
	fails  error
	starts int
	kills  int
	stdout *os.File
}

func (p *program) Start(_ context.Context, _ []string, stdout, _ *os.File) error {
	p.starts++
	p.stdout = stdout
	return p.fails
}

func (*program) Wait() error { return nil }

func (p *program) Kill() error {
	p.kills++
	return nil
}

func (*program) PID() int { return 7 }

// TestKillBeforeTheStart: a process that starts after Kill is killed at once.
func TestKillBeforeTheStart(t *testing.T) {
	t.Parallel()
	p := &program{}
	r := &processRunner{program: p}
	if err := r.Kill(t.Context()); err != nil || p.kills != 0 || r.pid() != 0 {
		t.Errorf("%d kills of what does not run (%v), PID %d", p.kills, err, r.pid())
	}
	if err := r.Start(t.Context()); err != nil || p.starts != 1 || p.kills != 1 {
		t.Errorf("%d starts, %d kills (%v), want one of each", p.starts, p.kills, err)
	}
	if _, err := p.stdout.Write([]byte("x")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("this process's copy of the program's end of the pipe is open: %v", err)
	}
	if err := r.Wait(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := r.stdout.Read(make([]byte, 1)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("this process's end of the pipe is open: %v", err)
	}
}

// TestProgramThatDoesNotStart leaves no descriptor open.
func TestProgramThatDoesNotStart(t *testing.T) {
	t.Parallel()
	p := &program{fails: errors.New("no such thing")}
	r := &processRunner{program: p}
	if err := r.Start(t.Context()); !errors.Is(err, p.fails) {
		t.Errorf("error %v, want %v", err, p.fails)
	}
	if _, err := p.stdout.Write([]byte("x")); !errors.Is(err, os.ErrClosed) || r.Stdout().(*os.File) != nil { //nolint:errcheck // it is one
		t.Errorf("a pipe is left: %v", err)
	}
	if err := r.Kill(t.Context()); err != nil || p.kills != 0 {
		t.Errorf("%d kills of what never ran (%v)", p.kills, err)
	}
}
