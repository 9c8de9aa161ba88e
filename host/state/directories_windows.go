package state

import (
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/windows"
)

// restrict gives a directory an access list that inherits nothing and admits SYSTEM, the Administrators and, if not elevated,
// this user: every user may create directories in ProgramData.
func restrict(dir string) error {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return fmt.Errorf("find the current user: %w", err)
	}
	if err := checkOwner(dir, user.User.Sid); err != nil {
		return err
	}
	const full = "(A;OICI;FA;;;"
	list := "D:P" + full + "SY)" + full + "BA)"
	if !windows.GetCurrentProcessToken().IsElevated() {
		list += full + user.User.Sid.String() + ")"
	}
	descriptor, err := windows.SecurityDescriptorFromString(list)
	if err != nil {
		return fmt.Errorf("create an access list: %w", err)
	}
	acl, _, err := descriptor.DACL()
	if err != nil {
		return fmt.Errorf("create an access list: %w", err)
	}
	if err := windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT,
		windows.DACL_SECURITY_INFORMATION|windows.PROTECTED_DACL_SECURITY_INFORMATION, nil, nil, acl, nil); err != nil {
		return fmt.Errorf("close %s to other users: %w", dir, err)
	}
	return nil
}

// checkOwner refuses a directory of another user, who could change its access list at any time.
func checkOwner(dir string, user *windows.SID) error {
	security, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return fmt.Errorf("find the owner of %s: %w", dir, err)
	}
	owner, _, err := security.Owner()
	if err != nil {
		return fmt.Errorf("find the owner of %s: %w", dir, err)
	}
	if owner == nil {
		return errors.New(dir + " has no owner")
	}
	if owner.Equals(user) || owner.IsWellKnown(windows.WinLocalSystemSid) ||
		owner.IsWellKnown(windows.WinBuiltinAdministratorsSid) {
		return nil
	}
	return fmt.Errorf("%s belongs to %s, neither to this user nor to the Administrators: %w", dir, owner, fs.ErrPermission)
}
