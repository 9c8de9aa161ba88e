package machine

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// liveDomain asks Windows, which requires no rights.
func liveDomain() (domain string, err error) {
	var name *uint16
	var status uint32
	if err := windows.NetGetJoinInformation(nil, &name, &status); err != nil {
		return "", fmt.Errorf("query the domain of the machine: %w", err)
	}
	switch status {
	case windows.NetSetupDomainName:
		domain = windows.UTF16PtrToString(name)
	case windows.NetSetupUnknownStatus:
		err = errors.New("query the domain of the machine: its status is unknown")
	}
	return domain, errors.Join(err, windows.NetApiBufferFree((*byte)(unsafe.Pointer(name))))
}
