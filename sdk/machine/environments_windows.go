package machine

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf16"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"
)

// The service control manager starts a process with the variables of the machine and of the account, then those of the
// value Environment (REG_MULTI_SZ, NAME=VALUE) of the service's key. All users can read the key, only administrators can
// write it. With an empty list a service does not start (error 87), so the value is deleted instead.
const (
	servicesKey      = `SYSTEM\CurrentControlSet\Services\`
	environmentValue = "Environment"
)

// Environment implements Environments.
func (windowsServices) Environment(unit string) (entries []string, err error) {
	err = withKey(unit, "read the environment of", registry.QUERY_VALUE, func(key registry.Key) error {
		size, _, err := key.GetValue(environmentValue, nil)
		if errors.Is(err, registry.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		data := make([]byte, size)
		size, kind, err := key.GetValue(environmentValue, data)
		if err != nil {
			return err
		}
		if kind != registry.MULTI_SZ {
			return errors.New("it is not a list of strings (REG_MULTI_SZ)")
		}
		entries = multiString(data[:size])
		return nil
	})
	return entries, err
}

// multiString splits a list of strings. Unlike package registry it keeps the last one of a list that is terminated only once,
// as Windows does.
func multiString(data []byte) []string {
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(data[2*i:])
	}
	all := strings.Split(string(utf16.Decode(units)), "\x00")
	return slices.DeleteFunc(all, func(text string) bool { return text == "" })
}

// SetEnvironment implements Environments.
func (windowsServices) SetEnvironment(unit string, entries []string) error {
	for _, entry := range entries {
		if entry == "" || strings.Contains(entry, "\x00") {
			return fmt.Errorf("the environment of the service %s: %w: an entry is empty or holds NUL", printable(unit), fs.ErrInvalid)
		}
	}
	return withKey(unit, "set the environment of", registry.SET_VALUE, func(key registry.Key) error {
		var err error
		if len(entries) > 0 {
			err = key.SetStringsValue(environmentValue, entries)
		} else if err = key.DeleteValue(environmentValue); errors.Is(err, registry.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		return flush(key)
	})
}

// withKey opens the key of a service for one operation, and the service itself, because a key can outlive it.
func withKey(unit, action string, access uint32, use func(registry.Key) error) error {
	err := with(unit, action, func(*mgr.Service) error {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+unit, access)
		if err != nil {
			return err
		}
		return closed(key, use(key))
	})
	if failure, ok := errors.AsType[*ServiceError](err); ok {
		failure.Hint = `see the value ` + environmentValue + ` of HKLM\` + servicesKey + unit
	}
	return err
}

// flush writes the key to the disk, which Windows otherwise delays by seconds.
func flush(key registry.Key) error {
	call := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegFlushKey")
	if err := call.Find(); err != nil {
		return err
	}
	if code, _, _ := call.Call(uintptr(key)); code != 0 {
		return fmt.Errorf("write the registry to the disk: %w", windows.Errno(code))
	}
	return nil
}
