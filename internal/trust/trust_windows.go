package trust

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
)

// walk checks a directory and its ancestors, and keeps them open without sharing the right to delete, so that none can be
// renamed or replaced before the caller calls release. The policy decides whether others may add to the last one.
func walk(path string, p Policy) (c aclChecker, release func(), err error) {
	var directories []windows.Handle
	release = func() {
		for _, h := range directories {
			_ = windows.CloseHandle(h) // opened for reading only
		}
	}
	defer func() {
		if err != nil {
			release()
		}
	}()
	if c, err = newACLChecker(); err != nil {
		return c, release, err
	}
	volume := filepath.VolumeName(path)
	at := volume + `\`
	if err := local(path, at); err != nil {
		return c, release, err
	}
	names := strings.FieldsFunc(path[len(volume):], func(r rune) bool { return r == '\\' || r == '/' })
	for i := range len(names) + 1 {
		h, err := openHandle(at, windows.FILE_LIST_DIRECTORY|windows.READ_CONTROL, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE)
		if err != nil {
			return c, release, err
		}
		directories = append(directories, h)
		if err := c.checkObject(h, at, true, i == len(names) && !p.stickyParent); err != nil {
			return c, release, err
		}
		if i < len(names) {
			at = filepath.Join(at, names[i])
		}
	}
	return c, release, nil
}

func open(path string, p Policy) (*os.File, error) {
	c, release, err := walk(filepath.Dir(path), p)
	if err != nil {
		return nil, err
	}
	defer release()
	h, err := openHandle(path, windows.GENERIC_READ|windows.READ_CONTROL, windows.FILE_SHARE_READ)
	if err != nil {
		return nil, err
	}
	if err := c.checkObject(h, path, false, true); err != nil {
		return nil, errors.Join(err, windows.CloseHandle(h))
	}
	return os.NewFile(uintptr(h), path), nil
}

func directory(path string, p Policy) (string, error) {
	_, release, err := walk(path, p)
	if err != nil {
		return "", err
	}
	release()
	return path, nil
}

// local refuses a network drive: the Administrators group of another machine has other members.
func local(path, root string) error {
	name, err := windows.UTF16PtrFromString(root)
	if err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	switch windows.GetDriveType(name) {
	case windows.DRIVE_FIXED, windows.DRIVE_REMOVABLE, windows.DRIVE_RAMDISK, windows.DRIVE_CDROM:
		return nil
	case windows.DRIVE_NO_ROOT_DIR:
		return &os.PathError{Op: "open", Path: path, Err: windows.ERROR_PATH_NOT_FOUND}
	default:
		return &Error{Path: path, Problem: "is not on a local drive", Remedy: "copy it to a local directory that only Administrators can write"}
	}
}

func openHandle(path string, access, share uint32) (windows.Handle, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	// Backup semantics allow to open directories; a reparse point itself is opened, not its target.
	h, err := windows.CreateFile(name, access, share, nil, windows.OPEN_EXISTING,
		windows.FILE_FLAG_BACKUP_SEMANTICS|windows.FILE_FLAG_OPEN_REPARSE_POINT, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return h, nil
}

// checkObject checks the type and the access control list of an open file or directory.
func (c aclChecker) checkObject(h windows.Handle, path string, directory, adding bool) error {
	var info windows.ByHandleFileInformation
	if err := windows.GetFileInformationByHandle(h, &info); err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	kind, err := windows.GetFileType(h)
	if err != nil {
		return &os.PathError{Op: "stat", Path: path, Err: err}
	}
	isDirectory := info.FileAttributes&windows.FILE_ATTRIBUTE_DIRECTORY != 0
	switch {
	case info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0:
		return &Error{Path: path, Problem: "is a link or another reparse point", Remedy: "use the path of its target"}
	case directory && !isDirectory:
		return &os.PathError{Op: "open", Path: path, Err: windows.ERROR_DIRECTORY}
	case !directory && isDirectory:
		return &os.PathError{Op: "open", Path: path, Err: ErrDirectory}
	case !directory && kind != windows.FILE_TYPE_DISK:
		return &Error{Path: path, Problem: "is not a regular file", Remedy: "replace it with a regular file"}
	}
	d, err := readDescriptor(h)
	if err != nil {
		return &os.PathError{Op: "read the security descriptor of", Path: path, Err: err}
	}
	problem, remedy := c.check(path, d, adding)
	if problem == "" {
		return nil
	}
	if directory {
		remedy = "use a directory that only Administrators can write, below directories in which only Administrators can replace files"
	}
	return &Error{Path: path, Problem: problem, Remedy: remedy}
}

func newACLChecker() (aclChecker, error) {
	token := windows.GetCurrentProcessToken()
	if token.IsElevated() {
		return aclChecker{}, nil
	}
	user, err := token.GetTokenUser()
	if err != nil {
		return aclChecker{}, &os.SyscallError{Syscall: "GetTokenInformation", Err: err}
	}
	return aclChecker{user: user.User.Sid.String()}, nil
}

func readDescriptor(h windows.Handle) (descriptor, error) {
	sd, err := windows.GetSecurityInfo(h, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return descriptor{}, err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return descriptor{}, err
	}
	d := descriptor{owner: accountOf(owner)}
	list, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && list == nil {
		d.missing = true
		return d, nil
	}
	if err != nil {
		return descriptor{}, err
	}
	for i := range list.AceCount {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(i), &ace); err != nil {
			return descriptor{}, err
		}
		e := aclEntry{kind: ace.Header.AceType, flags: ace.Header.AceFlags}
		if e.kind == aceAllowed || e.kind == aceAllowedCallback { // for other types only the type is needed
			e.mask = uint32(ace.Mask)
			e.account = accountOf((*windows.SID)(unsafe.Pointer(&ace.SidStart)))
		}
		d.entries = append(d.entries, e)
	}
	return d, nil
}

func accountOf(sid *windows.SID) account {
	if sid == nil {
		return account{name: "an unknown account"}
	}
	a := account{sid: sid.String(), name: sid.String()}
	if name, domain, _, err := sid.LookupAccount(""); err == nil {
		a.name = domain + `\` + name + " (" + a.sid + ")"
	}
	return a
}
