// Package trust opens files that only trusted users can change or replace.
package trust

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// Open opens a regular file for reading after a check of the file and of every directory up to the root: each must belong
// to root or to the user of this process (for root: to root alone) and must not be writable by others. A link is checked
// at its own place and at its target. The returned file is the one that was checked. A write permission of a POSIX access
// control list counts, because the group bits show it (acl(5)); the lists of network file systems are not checked.
//
// On Windows, owners and writers must be among Administrators, SYSTEM and TrustedInstaller, or the user of this process
// if it is not elevated; links and other reparse points are refused at every step. While the file is open, others cannot
// write, rename or delete it: keep a program open until it has started.
//
// An untrusted file is an *Error. Any other error means that the file could not be opened.
func Open(path string, p Policy) (*os.File, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	return open(absolute, p)
}

// Directory checks a directory and its ancestors as Open does, and returns its path without links. Others can neither
// change nor replace the directory, so the path stays valid. With shared, the directory may be a sticky one that others
// can write, such as /tmp.
func Directory(path string, shared bool) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return directory(absolute, Policy{stickyParent: shared})
}

// Parent checks the nearest existing directory at or above path, before a directory is created there.
func Parent(path string) error {
	_, err := Directory(path, false)
	for errors.Is(err, os.ErrNotExist) && filepath.Dir(path) != path {
		path = filepath.Dir(path)
		_, err = Directory(path, true)
	}
	return err
}

// Reason returns the rule that a trusted file meets, for a log.
func Reason() string {
	switch {
	case runtime.GOOS == "windows":
		return "only Administrators, SYSTEM, TrustedInstaller and, unless it is elevated, this user can change or replace it"
	case os.Geteuid() == 0:
		return "it and every directory above it belong to root, and only root can change or replace it"
	}
	return fmt.Sprintf("it and every directory above it belong to root or user %d, and only they can change or replace it", os.Geteuid())
}
