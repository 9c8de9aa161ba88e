package machine

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// windowsRegistry is the registry of the live machine.
type windowsRegistry struct{}

func liveRegistry() Registry { return windowsRegistry{} }

// Value implements Registry.
func (windowsRegistry) Value(key, name string) (data RegistryData, err error) {
	err = withKey(key, registry.QUERY_VALUE, func(k registry.Key) error {
		data, err = value(k, name)
		return err
	})
	return data, registryError("read", key, name, err)
}

// SetValue implements Registry.
func (windowsRegistry) SetValue(key, name string, data RegistryData) error {
	return registryError("set", key, name, changeKey(key, func(k registry.Key) error { return setValue(k, name, data) }))
}

// DeleteValue implements Registry.
func (windowsRegistry) DeleteValue(key, name string) error {
	err := changeKey(key, func(k registry.Key) error { return deleteValue(k, name) })
	if errors.Is(err, registry.ErrNotExist) {
		return nil
	}
	return registryError("delete", key, name, err)
}

func registryError(action, key, name string, err error) error {
	if err != nil {
		err = fmt.Errorf(`%s the registry value HKLM\%s\%s: %w`, action, printable(key), printable(name), err)
	}
	return err
}

// withKey opens a key of HKEY_LOCAL_MACHINE for one operation.
func withKey(path string, access uint32, use func(registry.Key) error) error {
	key, err := registry.OpenKey(registry.LOCAL_MACHINE, path, access)
	if err != nil {
		return fmt.Errorf("open the key: %w", err)
	}
	return closed(key, use(key))
}

// changeKey changes a key and writes it to the disk, which Windows otherwise delays by seconds. RegFlushKey requires the
// right to query values.
func changeKey(path string, change func(registry.Key) error) error {
	return withKey(path, registry.QUERY_VALUE|registry.SET_VALUE, func(key registry.Key) error {
		if err := change(key); err != nil {
			return err
		}
		if code, _, _ := advapi("RegFlushKey").Call(uintptr(key)); code != 0 {
			return fmt.Errorf("write the registry to the disk: %w", windows.Errno(code))
		}
		return nil
	})
}

// value reads a value, also one that grows meanwhile.
func value(key registry.Key, name string) (RegistryData, error) {
	buffer := make([]byte, 128)
	for {
		size, kind, err := key.GetValue(name, buffer)
		if errors.Is(err, registry.ErrShortBuffer) && size > len(buffer) {
			buffer = make([]byte, size)
			continue
		}
		if err != nil {
			return RegistryData{}, err
		}
		return RegistryData{Type: RegistryType(kind), Bytes: buffer[:size]}, nil
	}
}

// setValue sets data of any type, which package registry cannot.
func setValue(key registry.Key, name string, data RegistryData) error {
	pointer, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return err
	}
	code, _, _ := advapi("RegSetValueExW").Call(uintptr(key), uintptr(unsafe.Pointer(pointer)), 0, uintptr(data.Type),
		uintptr(unsafe.Pointer(unsafe.SliceData(data.Bytes))), uintptr(len(data.Bytes)))
	if code != 0 {
		return windows.Errno(code)
	}
	return nil
}

func advapi(name string) *windows.LazyProc {
	return windows.NewLazySystemDLL("advapi32.dll").NewProc(name)
}

func deleteValue(key registry.Key, name string) error {
	if err := key.DeleteValue(name); !errors.Is(err, registry.ErrNotExist) {
		return err
	}
	return nil
}

// texts returns the texts of a list (REG_MULTI_SZ). It keeps the last one of a list that is terminated only once, as Windows
// does.
func (d RegistryData) texts() []string {
	return slices.DeleteFunc(strings.Split(decodeUTF16(d.Bytes), "\x00"), func(text string) bool { return text == "" })
}
