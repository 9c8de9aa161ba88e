package machine

import (
	"errors"
	"io/fs"
	"syscall"

	"github.com/machineadm/machineadm/internal/atomicfile"
	"github.com/machineadm/machineadm/internal/rooted"
)

var (
	// ErrOffline reports that the machine is an image root and the operation needs a running system.
	ErrOffline = errors.New("an image root has nothing running")
	// ErrUnsupported reports that this operating system, or its init system, lacks the operation.
	// errors.Is(err, errors.ErrUnsupported) holds as well.
	ErrUnsupported error = unsupported{}
	// ErrUnsafe reports a directory in which other users could interfere with a write. The error names the directory, what
	// is wrong with it and how to fix it.
	ErrUnsafe = errors.New("others could interfere here")
	// ErrNotRegular reports a device, a pipe or a socket where a regular file is read or replaced.
	ErrNotRegular = rooted.ErrNotRegular
	// ErrReserved reports that a file was to have a name that writes keep for their temporary files.
	ErrReserved = atomicfile.ErrReserved
	// ErrForeign reports that something else has the name that is reserved for the temporary file of a write.
	ErrForeign = atomicfile.ErrForeign
	// ErrTwice reports that two files of a plan are one file of the machine, by its links.
	ErrTwice = errors.New("a link of this machine makes it the same file as another one of the plan, which differs")
	// ErrTooLarge reports a file that is larger than the limit.
	ErrTooLarge = errors.New("file too large")
)

type unsupported struct{}

func (unsupported) Error() string { return "not supported on this machine" }

func (unsupported) Is(other error) bool { return other == errors.ErrUnsupported }

// isAbsent reports whether an error means that a file does not exist.
func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func withoutPath(err error) error {
	for {
		inner, ok := err.(*fs.PathError) //nolint:errorlint // removes only outer layers, each of which repeats a path
		if !ok {
			return err
		}
		err = inner.Err
	}
}
