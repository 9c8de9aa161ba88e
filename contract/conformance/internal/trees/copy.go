package trees

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CopyTree copies what is below from, which may not exist, over what is below to, which does. With normal, modes are
// what the package's comment says, else the modes of from. fill replaces in every file.
func CopyTree(from, to string, normal bool, fill func([]byte) []byte) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	err := filepath.WalkDir(from, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		mode := info.Mode()
		if normal {
			mode = NormalMode(mode)
		}
		return CopyOne(name, filepath.Join(to, below), mode, fill)
	})
	if err != nil {
		return fmt.Errorf("copy a tree: %w", err)
	}
	return nil
}

// NormalMode returns 0755 for directories and programs and 0644 for other files, with the type of mode.
func NormalMode(mode fs.FileMode) fs.FileMode {
	if mode.IsDir() || mode.IsRegular() && mode&0o111 != 0 {
		return mode.Type() | 0o755
	}
	return mode.Type() | 0o644
}

// CopyOne copies one file, directory or link; fill changes the content of a file.
func CopyOne(from, to string, mode fs.FileMode, fill func([]byte) []byte) error {
	switch mode.Type() {
	case fs.ModeDir:
		if err := os.Mkdir(to, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return os.Chmod(to, mode) // not left to the umask
	case fs.ModeSymlink:
		said, err := os.Readlink(from)
		if err != nil {
			return err
		}
		if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return os.Symlink(said, to)
	case 0:
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		return Write(to, fill(data), mode)
	default:
		return nil // no case is about devices, pipes and sockets of a base root
	}
}

// Write makes or replaces a file with this mode, whatever the umask is.
func Write(name string, data []byte, mode fs.FileMode) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return err
	}
	return os.Chmod(name, mode)
}

// AsIs is the fill of a plain copy.
func AsIs(data []byte) []byte { return bytes.Clone(data) }
