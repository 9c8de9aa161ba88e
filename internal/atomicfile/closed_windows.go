package atomicfile

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/windows"
)

// closed says whether the file is not for others.
func (o Options) closed() bool { return o.Mode != 0 && o.Mode&0o007 == 0 }

// closedList is an access list that inherits nothing and lets in SYSTEM, the Administrators and this user. Source: Security
// Descriptor String Format.
func closedList() (*windows.SecurityAttributes, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, fmt.Errorf("find out which user this is: %w", err)
	}
	const full = "(A;;FA;;;"
	descriptor, err := windows.SecurityDescriptorFromString("D:P" + full + "SY)" + full + "BA)" + full + user.User.Sid.String() + ")")
	if err != nil {
		return nil, fmt.Errorf("make an access list: %w", err)
	}
	return &windows.SecurityAttributes{
		Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: descriptor,
	}, nil
}

// Closed says whether the access list of an open file lets in nobody but SYSTEM, the Administrators and this user: that is
// how Write makes a file whose mode gives others nothing.
func Closed(file *os.File) (bool, error) {
	descriptor, err := windows.GetSecurityInfo(windows.Handle(file.Fd()), windows.SE_FILE_OBJECT, windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return false, err
	}
	control, _, err := descriptor.Control()
	if err != nil {
		return false, err
	}
	list, _, err := descriptor.DACL()
	if err != nil || list == nil || control&windows.SE_DACL_PROTECTED == 0 {
		return false, err
	}
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return false, err
	}
	for i := range list.AceCount {
		var entry *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(i), &entry); err != nil {
			return false, err
		}
		if entry.Header.AceType == windows.ACCESS_DENIED_ACE_TYPE {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&entry.SidStart))
		known := sid.IsWellKnown(windows.WinLocalSystemSid) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) || sid.Equals(user.User.Sid)
		if entry.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || !known {
			return false, nil
		}
	}
	return true, nil
}
