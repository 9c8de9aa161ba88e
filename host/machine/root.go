package machine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/trust"
)

// AbsoluteRoot returns the directory of --root without links; "" for the live machine. For root, other users must not be able
// to replace the directory, because every write goes below it.
func AbsoluteRoot(root string) (string, error) {
	if root == "" {
		return "", nil
	}
	path, err := filepath.Abs(root)
	if err == nil && privileged() {
		path, err = trust.Directory(path, false)
	} else if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err := Untrusted("--root", err); err != nil {
		return "", err
	}
	if err != nil {
		return "", unusable(root, err)
	}
	dir, err := os.Open(path)
	if err != nil {
		return "", unusable(path, err)
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	info, err := dir.Stat()
	if err != nil {
		return "", unusable(path, err)
	}
	if !info.IsDir() {
		return "", rootError(path + " is not a directory")
	}
	// By identity, because a bind mount of / is the live machine too.
	live, err := os.Stat(filepath.VolumeName(path) + string(filepath.Separator))
	if err != nil {
		return "", unusable(path, err)
	}
	if os.SameFile(live, info) {
		return "", rootError(path + " is the live machine: omit --root")
	}
	return path, nil
}

// unusable returns the error of a directory that cannot be opened.
func unusable(path string, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return rootError(path + " does not exist")
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return rootError(path + " is not a directory")
	}
	return rootError(err.Error())
}

func rootError(message string) error {
	return &report.Error{Code: report.CodeUsage, Message: "--root: " + message}
}
