// Package proctree keeps every process that this one starts, and all their descendants, from outliving it: on every exit
// path, SIGKILL included.
//
// On Linux a guard, which is this same executable started once more (internal/proctree/guard), stands between this
// process, the host, and the programs:
//
//	host ── guard ─┬─ program ── whatever it starts
//	               └─ program ── whatever it starts
//
// Guard and programs are child subreapers (prctl(2)): what a program orphans stays below it as long as it lives, whatever
// session it made for itself, and comes to the guard when the program ends. The guard holds one end of a socket whose other
// end only the host holds. When a program exits or is to be killed, the guard kills all that comes from it until nothing is
// left. When the socket ends because the host is gone, it kills all it has, and exits. It takes no notice of SIGTERM,
// SIGINT, SIGHUP and SIGQUIT: a service manager sends them to every process of a unit, and it is the host that decides
// what they mean.
//
// Should the guard itself be killed, the programs die with it (PR_SET_PDEATHSIG), and what they had started comes to
// the host, which is a subreaper too and ends it with Tree.KillDescendants. Only if guard and host are both killed at
// nearly the same moment can a grandchild escape.
//
// On Windows everything shares a job object with the host that kills its members when the host is gone.
package proctree

import (
	"fmt"
	"os"
	"path/filepath"
)

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
	// Files become the descriptors 3, 4, ...; nil ones are closed there. All that the program starts is gone before the last
	// descriptor of them is closed. Only a script's interpreter sees one more, the script, which it is given as
	// /proc/self/fd/N. Windows hands on none.
	Files []*os.File
}

func (c Command) check() error {
	if !filepath.IsAbs(c.Path) {
		return fmt.Errorf("proctree: the path %q is not absolute", c.Path)
	}
	return nil
}
