package machine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// bootKey is a volatile registry key, which Windows keeps in memory until shutdown. It survives a fast startup, which
// resumes the kernel instead of booting it.
// Source: RegCreateKeyExW, REG_OPTION_VOLATILE.
const bootKey = `SOFTWARE\machineadm-boot`

// BootID returns a random ID that the first run of a boot stores. It is empty if none is stored and this user cannot write the
// registry.
func BootID(root string) string {
	if root != "" {
		return ""
	}
	id, err := bootIn(registry.LOCAL_MACHINE, bootKey)
	if err != nil {
		return ""
	}
	return id
}

func bootIn(parent registry.Key, path string) (_ string, err error) {
	key, err := openVolatile(parent, path)
	if errors.Is(err, windows.ERROR_ACCESS_DENIED) {
		key, err = registry.OpenKey(parent, path, registry.QUERY_VALUE)
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, key.Close()) }()
	const value = "BootID"
	id, _, err := key.GetStringValue(value)
	if err == nil && id != "" {
		return id, nil
	}
	id = rand.Text()
	return id, key.SetStringValue(value, id)
}

// openVolatile opens or creates a volatile key, which the registry package does not support.
func openVolatile(parent registry.Key, path string) (registry.Key, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	const (
		volatile = 1 // REG_OPTION_VOLATILE
		access   = registry.QUERY_VALUE | registry.SET_VALUE
	)
	var key syscall.Handle
	status, _, _ := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegCreateKeyExW").Call(
		uintptr(parent), uintptr(unsafe.Pointer(name)), 0, 0, volatile, access, 0, uintptr(unsafe.Pointer(&key)), 0)
	if status != 0 {
		return 0, fmt.Errorf("open the registry key %s: %w", path, syscall.Errno(status))
	}
	return registry.Key(key), nil
}
