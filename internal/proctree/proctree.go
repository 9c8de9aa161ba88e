// Package proctree keeps the processes that this one, the host, starts from outliving it.
//
// On Linux the host starts programs from one thread that does not end while they run, each with PR_SET_PDEATHSIG: the
// kernel kills a program when that thread ends, which is when the host does, SIGKILL included. The host is a child
// subreaper (prctl(2)), so that it adopts what its descendants orphan, whatever session or group that is in, and kills
// it when a program ends, when Tree.KillOrphans is called, and at its own end (Tree.KillDescendants). An orphan in
// another control group than the host's was started through a service manager, such as systemd-run --scope, and stays.
// Dead orphans are collected at once.
//
// The kernel sends the signal to the program alone. Descendants that do not ask for it themselves, as DieWithParent and
// the commands of sdk/machine do, survive a SIGKILL of the host. They still hold the descriptors of Command.Files, by
// which the next run finds them.
//
// On Windows everything shares a job object with the host that kills its members when the host is gone.
package proctree

import (
	"fmt"
	"os"
	"path/filepath"
)

// Killed is a process that was killed.
type Killed struct {
	PID int
	// Name is the name of the process, of at most 15 bytes, not its arguments, which can hold secrets. A process gives itself any name.
	Name string
}

// Command is a program that is to be started.
type Command struct {
	// Path is absolute, and the program's argv[0].
	Path string
	// Program, if it is not nil, is the open file that is executed instead of what has the path by then, so that what was
	// checked is what runs. It may be closed when Start has returned. On Windows, which starts programs by path only, it must
	// be open without FILE_SHARE_DELETE and FILE_SHARE_WRITE, so that it cannot be replaced.
	Program *os.File
	// Arguments follow argv[0].
	Arguments []string
	// Environment is the whole environment.
	Environment []string
	// Dir is the working directory; empty means that of this process.
	Dir string
	// Stdin, Stdout and Stderr are the null device where they are nil.
	Stdin, Stdout, Stderr *os.File
	// Files become the descriptors 3, 4, ..., which children of the program inherit as well; nil ones are closed there.
	// Only a script's interpreter sees one more, the script, which it is given as /proc/self/fd/N. Windows hands on none.
	Files []*os.File
}

func (c Command) check() error {
	if !filepath.IsAbs(c.Path) {
		return fmt.Errorf("proctree: the path %q is not absolute", c.Path)
	}
	return nil
}
