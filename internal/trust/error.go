package trust

import (
	"errors"
	"fmt"
)

// Error reports an untrusted file or directory. Remedy is a command only for the requested file, and only one that
// removes rights. For a directory it has one beside another remedy, because other programs may need the rights.
type Error struct {
	Path    string // the untrusted file or directory, which may be an ancestor of the requested file
	Problem string
	Remedy  string
}

// Error returns the path and the problem.
func (e *Error) Error() string { return fmt.Sprintf("%s %s", e.Path, e.Problem) }

// ErrDirectory reports that an input file is a directory.
var ErrDirectory = errors.New("is a directory")
