package atomicfile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// ErrBusy says that another live process kept writing the same file for longer than a write is willing to wait.
var ErrBusy = errors.New("another process keeps writing this file")

// ErrReserved says that a file was to have a name that this package keeps for its temporary files.
var ErrReserved = errors.New("the name is reserved for temporary files of machineadm")

// ErrForeign says that a file of a reserved name was not made by this package.
var ErrForeign = errors.New("in the way and was not made by machineadm")

// failed names the file and the step, so that a full disk and a missing right can be distinguished.
func failed(op, dir, name, step string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: filepath.Join(dir, name), Err: fmt.Errorf("%s: %w", step, err)}
}

// withoutPath drops the path of a temporary file, which has no meaning to the reader.
func withoutPath(err error) error {
	if inner, ok := errors.AsType[*fs.PathError](err); ok {
		return inner.Err
	}
	return err
}
