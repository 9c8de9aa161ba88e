package proctree

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Guarded is a command that cannot outlive this process.
type Guarded struct {
	lifeline *os.File // the guard's end, which the command hands on when it is started

	// host is a bare descriptor: an os.File that the garbage collector closes would kill the program of a
	// caller who kept the exec.Cmd alone.
	host int
	once sync.Once
	err  error
}

// Wrap turns cmd, which is not yet started, into one that starts a guard, which starts what cmd says: cmd.Path, absolute,
// or the open file program if that is not nil, so that what was checked is what runs. The program's argv[0] is cmd.Path,
// the other arguments, environment, directory, standard streams and cmd.ExtraFiles reach it unchanged; streams and
// environment may still be set after Wrap, ExtraFiles must be complete. Only a script's interpreter sees one
// descriptor more than cmd.ExtraFiles, the script, which it is given as /proc/self/fd/N. program stays open until cmd
// was started; the caller closes it.
//
// Guard and program each have a session of their own; attributes of cmd.SysProcAttr that say otherwise are replaced.
//
// cmd.Wait returns when the program and all its descendants are gone. Its status is the program's; 128 and the signal's
// number for a program that a signal ended; 126 if it could not be started and 127 if it does not exist, with a line on
// the program's stderr. cmd.Process is the guard: to end the program, call Kill instead of cmd.Process.Kill.
// The context of exec.CommandContext does so.
//
// Kill must be called in the end in any case: it frees what Wrap made.
func Wrap(cmd *exec.Cmd, program *os.File) (*Guarded, error) {
	switch {
	case cmd.Err != nil:
		return nil, cmd.Err
	case cmd.Process != nil:
		return nil, errors.New("proctree: the command was already started")
	case !filepath.IsAbs(cmd.Path):
		return nil, fmt.Errorf("proctree: the path %q is not absolute", cmd.Path)
	}
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("proctree: %w", err)
	}
	g := &Guarded{lifeline: os.NewFile(uintptr(pipe[0]), "lifeline"), host: pipe[1]}

	o := order{files: len(cmd.ExtraFiles), program: -1, path: cmd.Path, arguments: []string{cmd.Path}}
	if len(cmd.Args) > 1 {
		o.arguments = append(o.arguments, cmd.Args[1:]...)
	}
	// A full slice expression: append must not write into the caller's array.
	files := append(cmd.ExtraFiles[:o.files:o.files], g.lifeline)
	if program != nil {
		o.program = o.lifeline() + 1
		files = append(files, program)
	}
	cmd.Path = "/proc/self/exe"
	cmd.Args = o.encode()
	cmd.ExtraFiles = files
	cmd.SysProcAttr = session(cmd.SysProcAttr)
	if cmd.Cancel != nil {
		cmd.Cancel = g.Kill
	}
	return g, nil
}

// Kill has the guard kill the program and all its descendants; cmd.Wait returns when they are gone. After a Kill
// that came before the start, the program does not run: the guard ends at once, as if the program had been killed. It may be called at any time and more than once.
func (g *Guarded) Kill() error {
	g.once.Do(func() {
		g.err = errors.Join(syscall.Close(g.host), g.lifeline.Close())
	})
	return g.err
}

// session gives the guard its own session, so that neither the terminal's Ctrl-C nor a signal to the host's process
// group reaches what the host means to end in its own order.
func session(given *syscall.SysProcAttr) *syscall.SysProcAttr {
	attributes := syscall.SysProcAttr{}
	if given != nil {
		attributes = *given
	}
	attributes.Setsid = true
	attributes.Setpgid, attributes.Pgid = false, 0
	attributes.Setctty, attributes.Noctty, attributes.Foreground = false, false, false
	// The lifeline does this job; Pdeathsig would fire when the starting thread ends.
	attributes.Pdeathsig = 0
	return &attributes
}
