package netjoin

import (
	"errors"
	"fmt"
	"syscall"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"
)

// Windows are the Calls of the live machine.
type Windows struct{}

// Observe implements Calls.
func (Windows) Observe() (s State, err error) {
	if s.NetBIOS, s.DNS, err = membership(); err != nil {
		return State{}, err
	}
	if s.Name, err = computerName(); err != nil {
		return State{}, err
	}
	// SetComputerNameExW writes the name here, and no function returns it before the next boot.
	const names = `SYSTEM\CurrentControlSet\Control\ComputerName\ComputerName`
	if s.NextName, err = text(names, "ComputerName"); err != nil {
		return State{}, err
	}
	mark, err := text(markKey, markValue)
	s.Mark = Mark(mark)
	return s, err
}

// membership asks NetGetJoinInformation, whose answer has one name, and for a member DsRoleGetPrimaryDomainInformation, whose
// answer has both. Before the reboot the DNS name of the machine still has the old domain.
func membership() (netBIOS, dns string, err error) {
	var name *uint16
	var status uint32
	if err := netapi("NetGetJoinInformation", 0, uintptr(unsafe.Pointer(&name)), uintptr(unsafe.Pointer(&status))); err != nil {
		return "", "", err
	}
	netBIOS = windows.UTF16PtrToString(name)
	err = windows.NetApiBufferFree((*byte)(unsafe.Pointer(name)))
	switch {
	case err != nil:
		return "", "", err
	case status == windows.NetSetupUnknownStatus:
		return "", "", errors.New("the status of its membership is unknown")
	case status != windows.NetSetupDomainName:
		return "", "", nil
	}
	var info *struct { // DSROLE_PRIMARY_DOMAIN_INFO_BASIC
		role, flags       uint32
		flat, dns, forest *uint16
		id                windows.GUID
	}
	const basic = 1
	if err := netapi("DsRoleGetPrimaryDomainInformation", 0, basic, uintptr(unsafe.Pointer(&info))); err != nil {
		return "", "", err
	}
	dns = windows.UTF16PtrToString(info.dns)
	_, _, _ = netapi32("DsRoleFreeMemory").Call(uintptr(unsafe.Pointer(info))) // returns nothing
	return netBIOS, dns, nil
}

func computerName() (string, error) {
	name := make([]uint16, windows.MAX_COMPUTERNAME_LENGTH+1)
	size := uint32(len(name))
	err := windows.GetComputerNameEx(windows.ComputerNameNetBIOS, &name[0], &size)
	return windows.UTF16ToString(name), err
}

// The mark is a value of a volatile key, which Windows keeps in memory until it shuts down.
// Source: RegCreateKeyExW, REG_OPTION_VOLATILE.
const (
	markKey   = `SOFTWARE\machineadm-domain-join`
	markValue = "Mark"
)

// Mark implements Calls.
func (Windows) Mark(m Mark) (err error) {
	name, err := windows.UTF16PtrFromString(markKey)
	if err != nil {
		return err
	}
	const volatile = 1 // REG_OPTION_VOLATILE
	var key windows.Handle
	status, _, _ := windows.NewLazySystemDLL("advapi32.dll").NewProc("RegCreateKeyExW").Call(uintptr(registry.LOCAL_MACHINE),
		uintptr(unsafe.Pointer(name)), 0, 0, volatile, registry.SET_VALUE, 0, uintptr(unsafe.Pointer(&key)), 0)
	if status != 0 {
		return fmt.Errorf(`create the registry key HKLM\%s: %w`, markKey, syscall.Errno(status))
	}
	k := registry.Key(key)
	defer func() { err = errors.Join(err, k.Close()) }()
	return k.SetStringValue(markValue, string(m))
}

// text reads a value of the registry, empty if there is none.
func text(key, name string) (_ string, err error) {
	k, err := registry.OpenKey(registry.LOCAL_MACHINE, key, registry.QUERY_VALUE)
	if errors.Is(err, registry.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf(`open the registry key HKLM\%s: %w`, key, err)
	}
	defer func() { err = errors.Join(err, k.Close()) }()
	value, _, err := k.GetStringValue(name)
	if err != nil && !errors.Is(err, registry.ErrNotExist) {
		return "", fmt.Errorf(`read the registry value HKLM\%s\%s: %w`, key, name, err)
	}
	return value, nil
}

// Rename implements Calls.
func (Windows) Rename(host string) error {
	name, err := windows.UTF16PtrFromString(host)
	if err != nil {
		return err
	}
	ok, _, err := windows.NewLazySystemDLL("kernel32.dll").NewProc("SetComputerNameExW").Call(
		windows.ComputerNamePhysicalDnsHostname, uintptr(unsafe.Pointer(name)))
	if ok != 0 {
		return nil
	}
	if code, isCode := errors.AsType[syscall.Errno](err); isCode {
		return CodeError(code)
	}
	return err
}

// Join implements Calls.
func (Windows) Join(r Request) error {
	if r.Blob != nil {
		return provision(r.Blob)
	}
	domain, err := windows.UTF16PtrFromString(r.Domain)
	if err != nil {
		return err
	}
	account, err := windows.UTF16PtrFromString(r.Account)
	if err != nil {
		return err
	}
	var unit *uint16
	if r.Unit != "" {
		if unit, err = windows.UTF16PtrFromString(r.Unit); err != nil {
			return err
		}
	}
	password := encode(r.Password)
	defer clear(password)
	return netapi("NetJoinDomain", 0, uintptr(unsafe.Pointer(domain)), uintptr(unsafe.Pointer(unit)),
		uintptr(unsafe.Pointer(account)), uintptr(unsafe.Pointer(&password[0])), uintptr(r.Flags))
}

func provision(blob []byte) error {
	directory, err := windows.GetSystemWindowsDirectory()
	if err != nil {
		return err
	}
	path, err := windows.UTF16PtrFromString(directory)
	if err != nil {
		return err
	}
	const (
		online      = 0x40000000      // NETSETUP_PROVISION_ONLINE_CALLER: the directory belongs to the running system
		mustRestart = CodeError(2713) // NERR_JoinPerformedMustRestart
	)
	err = netapi("NetRequestOfflineDomainJoin", uintptr(unsafe.Pointer(&blob[0])), uintptr(len(blob)), online, uintptr(unsafe.Pointer(path)))
	if errors.Is(err, mustRestart) {
		return nil
	}
	return err
}

// Leave implements Calls.
func (Windows) Leave(user string, secret []byte) error {
	account, err := windows.UTF16PtrFromString(user)
	if err != nil {
		return err
	}
	password := encode(secret)
	defer clear(password)
	const disable = 0x4 // NETSETUP_ACCT_DELETE, which disables the account in spite of its name
	return netapi("NetUnjoinDomain", 0, uintptr(unsafe.Pointer(account)), uintptr(unsafe.Pointer(&password[0])), disable)
}

// encode returns a secret as UTF-16 with a terminating NUL, in one buffer that the caller clears.
func encode(secret []byte) []uint16 {
	text := make([]uint16, 0, len(secret)+1) // no character has fewer bytes than units
	for len(secret) > 0 {
		letter, size := utf8.DecodeRune(secret)
		text = utf16.AppendRune(text, letter)
		secret = secret[size:]
	}
	return append(text, 0)
}

func netapi32(name string) *windows.LazyProc {
	return windows.NewLazySystemDLL("netapi32.dll").NewProc(name)
}

// netapi calls a function that returns an error code. Its arguments may be pointers to local variables.
//
//go:uintptrescapes
func netapi(name string, arguments ...uintptr) error {
	proc := netapi32(name)
	if err := proc.Find(); err != nil {
		return err
	}
	if code, _, _ := proc.Call(arguments...); code != 0 {
		return CodeError(code)
	}
	return nil
}
