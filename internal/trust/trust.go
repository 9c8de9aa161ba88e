// Package trust judges files that are executed or believed by whoever runs this process: nobody else may have been
// able to write them, or to put another file in their place.
package trust

import (
	"fmt"
	"os"
	"path/filepath"
)

// Policy says how a file is judged. Make one with Program or Stream.
type Policy struct {
	noLink       bool // the last step of the path must not be a link
	stickyParent bool // the file may stand in a sticky directory that others can write, such as /tmp
}

// Program is the policy for what is executed. Links are judged at every step; a sticky directory may be an ancestor,
// but not the program's own directory.
func Program() Policy { return Policy{} }

// Stream is the policy for a file that is believed. It is no link. It may stand in /tmp itself, where the proposal's
// cloud-init template puts it: the sticky bit keeps others from replacing it.
func Stream() Policy { return Policy{noLink: true, stickyParent: true} }

// Error is a refusal: which file or directory, what is wrong with it, and the command that mends it.
type Error struct {
	Path    string // the file or directory at fault
	Problem string
	Remedy  string
}

// Error is the path and the problem.
func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.Path, e.Problem) }

// Open opens a file for reading and judges it: it must be a regular file; it and every directory up to the root must be
// owned by root or by the user of this process (for root: by root alone) and not be writable by others; a link is
// judged where it stands and where it leads. The open file is the one that was judged. A write permission of a POSIX
// access control list counts: it shows in the group's bits (acl(5)); the lists of network file systems are not seen.
//
// On Windows, owners and writers must be among Administrators, SYSTEM and TrustedInstaller, or the user of this process
// if it is not elevated; links and other reparse points are refused wherever they stand. While the file is open, nobody
// can write, rename or delete it: keep it open until a program was started.
//
// A refusal is an *Error. Any other error says that the file could not be opened.
func Open(path string, p Policy) (*os.File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return open(absolute, p)
}
