package require

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// WriteProgram writes a program, with mode 0755, that this process can execute at once. It replaces the content of a file.
func WriteProgram(path string, content []byte) error {
	return unforked(func() error {
		return os.WriteFile(path, content, 0o755) //nolint:gosec // a program
	})
}

// CopyProgram copies a program to a file that does not exist yet, with mode 0755. This process can execute it at once.
func CopyProgram(to, from string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return unforked(func() error {
		out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755) //nolint:gosec // a program
		if err != nil {
			return err
		}
		_, err = io.Copy(out, in)
		return errors.Join(err, out.Chmod(0o755), out.Close())
	})
}

// unforked writes a file while this process forks no child. A child has every open file of its parent until its exec, and
// Linux executes no file that is open for writing (ETXTBSY, https://go.dev/issue/22315).
func unforked(write func() error) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return write()
}
