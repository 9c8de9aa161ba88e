// Package trust checks that only trusted users can change a file that this process executes or believes, or replace it.
package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Policy says how a file is checked. Make one with Program, Settings or Stream.
type Policy struct {
	executable   bool // the file must have an execute permission
	noLink       bool // the last step of the path must not be a link
	stickyParent bool // the file may stand in a sticky directory that others can write, such as /tmp
}

// Program is the policy for what is executed. Links are checked at every step; a sticky directory may be an ancestor,
// but not the program's own directory.
func Program() Policy { return Policy{executable: true} }

// Settings is the policy for an installed file that is believed: Program without the execute permission.
func Settings() Policy { return Policy{} }

// Stream is the policy for an input file. It is no link. It may stand in /tmp itself, where the proposal's cloud-init
// template puts it: the sticky bit keeps others from replacing it.
func Stream() Policy { return Policy{noLink: true, stickyParent: true} }

// Error is a refusal: which file or directory, what is wrong with it, and what to do. The remedy is a command only for
// the file that was asked for, and one that takes rights from others; a directory above it is not machineadm's to change.
type Error struct {
	Path    string // the file or directory at fault
	Problem string
	Remedy  string
}

// Error is the path and the problem.
func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.Path, e.Problem) }

// ErrDirectory says that an input file is a directory.
var ErrDirectory = errors.New("is a directory")

// Open opens a file for reading and checks it: it must be a regular file; it and every directory up to the root must be
// owned by root or by the user of this process (for root: by root alone) and not be writable by others; a link is
// checked where it stands and where it leads. The open file is the one that was checked. A write permission of a POSIX
// access control list counts: it shows in the group's bits (acl(5)); the lists of network file systems are not seen.
//
// On Windows, owners and writers must be among Administrators, SYSTEM and TrustedInstaller, or the user of this process
// if it is not elevated; links and other reparse points are refused wherever they stand. While the file is open, others
// cannot write, rename or delete it: keep it open until a program was started.
//
// A refusal is an *Error. Any other error says that the file could not be opened.
func Open(path string, p Policy) (*os.File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return open(absolute, p)
}

// Directory checks a directory and every directory above it as Open does, and returns its path without links. Others
// can neither change the directory nor replace it, so that the path stays valid. With shared, it may be a sticky
// directory that others can write, such as /tmp.
func Directory(path string, shared bool) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return directory(absolute, Policy{stickyParent: shared})
}

// Place checks where a directory is to be made: the nearest directory above path that exists, or path itself.
func Place(path string) error {
	_, err := Directory(path, false)
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		_, err = Directory(path, true)
	}
	return err
}

// Reason says what it means that a file of this process is trusted, for a log.
func Reason() string {
	switch {
	case runtime.GOOS == "windows":
		return "only Administrators, SYSTEM, TrustedInstaller and, unless it is elevated, this user can change or replace it"
	case os.Geteuid() == 0:
		return "it and every directory above it belong to root, and only root can change or replace it"
	}
	return fmt.Sprintf("it and every directory above it belong to root or user %d, and only they can change or replace it", os.Geteuid())
}

// Quote makes text one word of a shell's command line: of cmd and PowerShell on Windows, where paths hold no quotes.
func Quote(text string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+=:,@%", r)
	}
	switch {
	case runtime.GOOS == "windows":
		return `"` + text + `"`
	case text != "" && strings.IndexFunc(text, func(r rune) bool { return !plain(r) }) < 0:
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
