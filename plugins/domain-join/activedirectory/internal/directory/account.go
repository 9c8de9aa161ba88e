package directory

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/go-ldap/ldap/v3"
)

// Account is the account of a computer.
type Account struct {
	DN, DNSName string
	Services    []string
	// EncryptionTypes are the bits of msDS-SupportedEncryptionTypes; 0 if the attribute is absent.
	EncryptionTypes uint32
	// Version numbers its keys.
	Version  uint32
	Disabled bool

	control uint64
}

// The attributes of an account.
const (
	DNSName         = "dNSHostName"
	Services        = "servicePrincipalName"
	EncryptionTypes = "msDS-SupportedEncryptionTypes"

	accountName = "sAMAccountName"
	control     = "userAccountControl"
	version     = "msDS-KeyVersionNumber"
	password    = "unicodePwd"

	disabledBit, workstationBit = 0x2, 0x1000
)

// Account returns the account of a computer, by its name without $; nil if the domain has none.
func (s *Session) Account(ctx context.Context, computer string) (*Account, error) {
	filter := "(&(objectCategory=computer)(" + accountName + "=" + ldap.EscapeFilter(computer+"$") + "))"
	entries, err := s.search(ctx, filter, DNSName, Services, EncryptionTypes, control, version)
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	e := entries[0]
	number := func(attribute string) uint64 {
		n, err := strconv.ParseInt(e.GetAttributeValue(attribute), 10, 64)
		if err != nil || n < 0 {
			return 0 // absent, or none that this package uses
		}
		return uint64(n)
	}
	bits := number(control)
	return &Account{
		DN: e.DN, DNSName: e.GetAttributeValue(DNSName), Services: e.GetAttributeValues(Services),
		EncryptionTypes: uint32(number(EncryptionTypes)), Version: uint32(number(version)), //nolint:gosec // of 32 bits
		Disabled: bits&disabledBit != 0, control: bits,
	}, nil
}

// Holders returns the distinguished names of other accounts that have one of the services, by service.
func (s *Session) Holders(ctx context.Context, computer string, services []string) (map[string]string, error) {
	filter := "(&(!(" + accountName + "=" + ldap.EscapeFilter(computer+"$") + "))(|"
	for _, service := range services {
		filter += "(" + Services + "=" + ldap.EscapeFilter(service) + ")"
	}
	entries, err := s.search(ctx, filter+"))", Services)
	holders := map[string]string{}
	for _, e := range entries {
		for _, held := range e.GetAttributeValues(Services) {
			i := slices.IndexFunc(services, func(service string) bool { return strings.EqualFold(service, held) })
			if i >= 0 {
				holders[services[i]] = e.DN
			}
		}
	}
	return holders, err
}

// Unit returns the distinguished name in which an account is created, the domain's container for computers if none is asked for,
// and whether the authenticated account may create computers there: by a right on it, or because every user may create some.
func (s *Session) Unit(ctx context.Context, unit string) (dn string, may bool, err error) {
	if unit == "" {
		unit = "<WKGUID=aa312825768811d1aded00c04fd8d5cd," + s.base + ">"
	}
	const allowed = "allowedChildClassesEffective"
	e, err := s.read(ctx, unit, allowed)
	if err != nil {
		return "", false, err
	}
	if slices.Contains(e.GetAttributeValues(allowed), "computer") {
		return e.DN, true, nil
	}
	const quota = "ms-DS-MachineAccountQuota"
	domain, err := s.read(ctx, s.base, quota)
	if err != nil {
		return "", false, err
	}
	return e.DN, domain.GetAttributeValue(quota) != "0", nil
}

// Create creates the account of a computer in a unit, with this password and nothing else that has a default.
func (s *Session) Create(ctx context.Context, computer, unit, newPassword string) error {
	request := ldap.NewAddRequest("CN="+ldap.EscapeDN(computer)+","+unit, nil)
	request.Attribute("objectClass", []string{"computer"})
	request.Attribute(accountName, []string{computer + "$"})
	request.Attribute(control, []string{strconv.Itoa(workstationBit)})
	request.Attribute(password, []string{quoted(newPassword)})
	return s.do(ctx, func() error { return s.conn.Add(request) })
}

// Reset sets the password of an account and enables it.
func (s *Session) Reset(ctx context.Context, a Account, newPassword string) error {
	request := ldap.NewModifyRequest(a.DN, nil)
	request.Replace(password, []string{quoted(newPassword)})
	if a.Disabled {
		request.Replace(control, []string{strconv.FormatUint(a.control&^disabledBit, 10)})
	}
	return s.do(ctx, func() error { return s.conn.Modify(request) })
}

// Set replaces an attribute. Values of Services are added, because others may have added theirs.
func (s *Session) Set(ctx context.Context, dn, attribute string, values ...string) error {
	request := ldap.NewModifyRequest(dn, nil)
	if attribute == Services {
		request.Add(attribute, values)
	} else {
		request.Replace(attribute, values)
	}
	return s.do(ctx, func() error { return s.conn.Modify(request) })
}

// Disable disables an account.
func (s *Session) Disable(ctx context.Context, a Account) error {
	return s.Set(ctx, a.DN, control, strconv.FormatUint(a.control|disabledBit, 10))
}

// Delete deletes an account with all that services have stored below it.
func (s *Session) Delete(ctx context.Context, a Account) error {
	request := ldap.NewDelRequest(a.DN, []ldap.Control{ldap.NewControlSubtreeDelete()})
	return s.do(ctx, func() error { return s.conn.Del(request) })
}

// quoted is the form of a password in the directory: in quotation marks, UTF-16 in little-endian order.
func quoted(password string) string {
	var text []byte
	for _, unit := range utf16.Encode([]rune(`"` + password + `"`)) {
		text = binary.LittleEndian.AppendUint16(text, unit)
	}
	return string(text)
}
