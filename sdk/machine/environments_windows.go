package machine

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sys/windows/registry"
	"golang.org/x/sys/windows/svc/mgr"
)

// The service control manager starts a process with the variables of the machine and of the account, then the variables of the
// value Environment (REG_MULTI_SZ, NAME=VALUE) of the service's key. All users can read the key, only administrators can
// write it. With an empty list a service does not start (error 87), so the value is deleted instead.
const (
	servicesKey      = `SYSTEM\CurrentControlSet\Services\`
	environmentValue = "Environment"
)

// Environment implements Environments.
func (windowsServices) Environment(unit string) (entries []string, err error) {
	err = environmentOf(unit, "read", func(path string) error {
		return withKey(path, registry.QUERY_VALUE, func(key registry.Key) error {
			data, err := value(key, environmentValue)
			switch {
			case errors.Is(err, registry.ErrNotExist):
				return nil
			case err == nil && data.Type != registry.MULTI_SZ:
				return errors.New("it is not a list of strings (REG_MULTI_SZ)")
			}
			entries = data.texts()
			return err
		})
	})
	return entries, err
}

// SetEnvironment implements Environments.
func (windowsServices) SetEnvironment(unit string, entries []string) error {
	for _, entry := range entries {
		if entry == "" || strings.Contains(entry, "\x00") {
			return fmt.Errorf("the environment of the service %s: %w: an entry is empty or holds NUL", printable(unit), fs.ErrInvalid)
		}
	}
	return environmentOf(unit, "set", func(path string) error {
		return changeKey(path, func(key registry.Key) error {
			if len(entries) > 0 {
				return key.SetStringsValue(environmentValue, entries)
			}
			return deleteValue(key, environmentValue)
		})
	})
}

// environmentOf uses the key of a service. It opens the service as well, because a key can outlive it.
func environmentOf(unit, action string, use func(path string) error) error {
	err := with(unit, action+" the environment of", func(*mgr.Service) error { return use(servicesKey + unit) })
	if failure, ok := errors.AsType[*ServiceError](err); ok {
		failure.Hint = `see the value ` + environmentValue + ` of HKLM\` + servicesKey + unit
	}
	return err
}
