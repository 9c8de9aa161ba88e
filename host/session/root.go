package session

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/machineadm/machineadm/internal/trust"
)

// absoluteRoot returns the directory of --root without links; "" for the live machine. For root, other users must not be able
// to replace the directory, because every write goes below it.
func absoluteRoot(root string) (string, error) {
	if root == "" {
		return "", nil
	}
	path, err := filepath.Abs(root)
	if err == nil && privileged() {
		path, err = trust.Directory(path, false)
	} else if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err := untrusted("--root", err); err != nil {
		return "", err
	}
	if err != nil {
		return "", rootError(root, err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return "", rootError(path, err)
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	info, err := dir.Stat()
	if err != nil {
		return "", rootError(path, err)
	}
	if !info.IsDir() {
		return "", usage("--root: " + path + " is not a directory")
	}
	// By identity, because a bind mount of / is the live machine too.
	live, err := os.Stat(filepath.VolumeName(path) + string(filepath.Separator))
	if err != nil {
		return "", rootError(path, err)
	}
	if os.SameFile(live, info) {
		return "", usage("--root: " + path + " is the live machine: omit --root")
	}
	return path, nil
}

func rootError(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return usage("--root: " + path + " does not exist")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return usage("--root: " + path + " is not a directory")
	}
	return usage("--root: " + err.Error())
}
