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

// The service control manager gives a process that it starts the variables of the machine and of the account, then
// those of the value Environment of the service's key, a list of NAME=VALUE (REG_MULTI_SZ). It reads them at each start
// of the service. With an empty list the service does not start (error 87), so there is none then. All users can read
// the key, its administrators alone can write to it.
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
			return errors.New("it is no list of strings (REG_MULTI_SZ)")
		}
		entries = multiString(data[:size])
		return nil
	})
	return entries, err
}

// multiString divides a list of strings. The package registry would lose the last one of a list that is not terminated
// twice, which Windows itself takes.
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
		if len(entries) > 0 {
			if err := key.SetStringsValue(environmentValue, entries); err != nil {
				return err
			}
			return flush(key)
		}
		if err := key.DeleteValue(environmentValue); err != nil && !errors.Is(err, registry.ErrNotExist) {
			return err
		}
		return flush(key)
	})
}

// withKey opens the key of a service for the time of a call. The service itself is opened as well: a key can outlive it.
func withKey(unit, action string, access uint32, use func(registry.Key) error) error {
	err := with(unit, action, func(*mgr.Service) (err error) {
		key, err := registry.OpenKey(registry.LOCAL_MACHINE, servicesKey+unit, access)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, key.Close()) }()
		return use(key)
	})
	if failure, ok := errors.AsType[*ServiceError](err); ok {
		failure.Hint = `see the value ` + environmentValue + ` of HKLM\` + servicesKey + unit
	}
	return err
}

// flush writes the key to the disk: by itself Windows takes a few seconds.
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

// Environment implements Environments.
func (unsupportedServices) Environment(unit string) ([]string, error) {
	return nil, noImageServices(unit)
}

// SetEnvironment implements Environments.
func (unsupportedServices) SetEnvironment(unit string, _ []string) error {
	return noImageServices(unit)
}
