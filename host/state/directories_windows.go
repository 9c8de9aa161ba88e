package state

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"
)

// tighten gives a directory an access list of its own that lets in SYSTEM, the Administrators and this user, if that is no
// elevated Administrator, and inherits nothing: everyone may make directories in ProgramData, and so may have made this one.
func tighten(dir string, _ fs.FileInfo) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("find out which user this is: %w", err)
	}
	if err := checkOwner(dir, user.User.Sid); err != nil {
		return err
	}
	const full = "(A;OICI;FA;;;"
	list := "D:P" + full + "SY)" + full + "BA)"
	if !windows.GetCurrentProcessToken().IsElevated() {
		list += full + user.User.Sid.String() + ")"
	}
	wanted, err := windows.SecurityDescriptorFromString(list)
	if err != nil {
		return fmt.Errorf("make an access list: %w", err)
	}
	acl, _, err := wanted.DACL()
	if err != nil {
		return fmt.Errorf("make an access list: %w", err)
	}
	if err := windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, acl, nil); err != nil {
		return fmt.Errorf("close %s to other users: %w", dir, err)
	}
	return nil
}

// tightenInner has nothing to do: access lists are inherited.
func tightenInner(string, fs.FileInfo) error { return nil }

// checkOwner refuses a directory of another user, who could open it again at any time.
func checkOwner(dir string, user *windows.SID) error {
	security, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("find out whose %s is: %w", dir, err)
	}
	owner, _, err := security.Owner()
	if err != nil {
		return fmt.Errorf("find out whose %s is: %w", dir, err)
	}
	if owner == nil {
		return errors.New(dir + " belongs to nobody")
	}
	if owner.Equals(user) || owner.IsWellKnown(windows.WinLocalSystemSid) ||
		owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return nil
	}
	return fmt.Errorf("%s belongs to %s, neither to this user nor to the Administrators: %w", dir, owner, fs.ErrPermission)
}
