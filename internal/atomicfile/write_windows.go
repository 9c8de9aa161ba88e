package atomicfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// Write puts data at name inside the directory that dir was opened as. Windows replaces files by name, so unlike on
// Linux the directory must not be renamed meanwhile. A file that a reader keeps open without sharing is waited for.
func Write(dir *os.File, name string, data []byte, o Options) error {
	fail := func(step string, err error) error { return failed("write", dir.Name(), name, step, err) }
	if err := checkName(name); err != nil {
		return fail("check the name", err)
	}
	if o.Owner != nil {
		return fail("set the owner", fmt.Errorf("numeric owners: %w", errors.ErrUnsupported))
	}
	temporary := filepath.Join(dir.Name(), temporaryName(name, temporarySuffix))
	final := filepath.Join(dir.Name(), name)
	for p := newBackoff(ownerWait); ; {
		step, err := replaceWith(temporary, final, data, o.closed())
		if err == nil {
			return nil
		}
		if !busy(err) {
			return fail(step, err)
		}
		if !p.wait() {
			return fail(step, errors.Join(ErrBusy, err))
		}
	}
}

// replaceWith holds one handle from the first byte to the rename. It lets others read, rename and delete, but not
// write: a second writer is refused with a sharing violation so the first one is alive. A handle ends with
// its process, so what a killed writer left behind refuses nobody.
func replaceWith(temporary, final string, data []byte, closed bool) (step string, err error) {
	handle, err := create(temporary, closed)
	if err != nil {
		return "create a temporary file", err
	}
	file := os.NewFile(uintptr(handle), temporary)
	step = "write the new contents"
	if _, err = file.Write(data); err == nil {
		step, err = "make the new contents durable", windows.FlushFileBuffers(handle)
	}
	if err == nil {
		step, err = "put the new file in place", rename(temporary, final)
	}
	if err != nil {
		// Removed while the handle is open, so that it cannot be another writer's.
		return step, errors.Join(withoutPath(err), withoutPath(removeFile(temporary)), withoutPath(file.Close()))
	}
	return "close the new file, which is in place", withoutPath(file.Close())
}

const (
	// shared: see replaceWith.
	shared = windows.FILE_SHARE_READ | windows.FILE_SHARE_DELETE
	// itself: a reparse point is opened itself, never what it leads to.
	itself = windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_OPEN_REPARSE_POINT
)

func create(temporary string, closed bool) (windows.Handle, error) {
	path, err := windows.UTF16PtrFromString(temporary)
	if err != nil {
		return 0, err
	}
	if !closed {
		return windows.CreateFile(path, windows.GENERIC_WRITE, shared, nil, windows.CREATE_ALWAYS, itself, 0)
	}
	list, err := closedList()
	if err != nil {
		return 0, err
	}
	handle, err := windows.CreateFile(path, windows.GENERIC_WRITE, shared, list, windows.CREATE_NEW, itself, 0)
	if !errors.Is(err, windows.ERROR_FILE_EXISTS) {
		return handle, err
	}
	// A process that opened the file of a killed writer can read what is written to it, whatever its list is by then: remove it.
	// A writer that lives refuses this.
	stale, err := windows.CreateFile(path, windows.DELETE, shared, nil, windows.OPEN_EXISTING, itself|windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		return 0, err
	}
	if err := windows.CloseHandle(stale); err != nil {
		return 0, err
	}
	return windows.CreateFile(path, windows.GENERIC_WRITE, shared, list, windows.CREATE_NEW, itself, 0)
}

func rename(from, to string) error {
	source, err := windows.UTF16PtrFromString(from)
	if err != nil {
		return err
	}
	target, err := windows.UTF16PtrFromString(to)
	if err != nil {
		return err
	}
	return windows.MoveFileEx(source, target, windows.MOVEFILE_REPLACE_EXISTING|windows.MOVEFILE_WRITE_THROUGH)
}

// Symlink puts a link to target at name inside dir, replacing in one step what is there. Making links needs
// SeCreateSymbolicLinkPrivilege or developer mode.
func Symlink(dir *os.File, target, name string) error {
	fail := func(step string, err error) error { return failed("symlink", dir.Name(), name, step, err) }
	if err := checkName(name); err != nil {
		return fail("check the name", err)
	}
	temporary := filepath.Join(dir.Name(), temporaryName(name, linkSuffix))
	if err := removeFile(temporary); err != nil {
		return fail("remove a stale temporary link", err)
	}
	if err := os.Symlink(target, temporary); err != nil {
		return fail("create a temporary link", err)
	}
	if err := rename(temporary, filepath.Join(dir.Name(), name)); err != nil {
		return fail("put the link in place", errors.Join(err, removeFile(temporary)))
	}
	return nil
}

// busy distinguishes an open file, which is temporary, from other errors. Replacing an open file is refused as
// access denied, the same as a missing right, so a missing right is tried for a while, too.
func busy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION) ||
		errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// Remove removes a leftover from dir. What a live process holds, and what this package cannot have made, stays.
func Remove(dir *os.File, leftover string) error {
	path := filepath.Join(dir.Name(), leftover)
	info, err := os.Lstat(path)
	if err != nil || !Leftover(leftover) || !info.Mode().IsRegular() && info.Mode()&os.ModeSymlink == 0 {
		return nil //nolint:nilerr // nothing that a write left
	}
	if err := removeFile(path); err != nil && !busy(err) {
		return failed("remove", dir.Name(), leftover, "clean up after an interrupted write", withoutPath(err))
	}
	return nil
}

func removeFile(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
