package directory

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/go-ldap/ldap/v3"
)

// site asks the controller to which site it counts this machine, and whether the controller is one of it: the LDAP ping of
// [MS-ADTS] section 6.3.3, over the connection that there is.
func (s *Session) site(ctx context.Context, domain string) (name string, near bool, err error) {
	const version5ex = `\06\00\00\00` // asks for the reply of parseSite
	entries, err := s.find(ctx, ldap.NewSearchRequest("", ldap.ScopeBaseObject, ldap.NeverDerefAliases, 0, 0, false,
		"(&(DnsDomain="+ldap.EscapeFilter(domain)+")(NtVer="+version5ex+"))", []string{"netlogon"}, nil))
	if err != nil {
		return "", false, err
	}
	if len(entries) != 1 {
		return "", false, errors.New("the domain controller does not answer a ping")
	}
	return parseSite(entries[0].GetRawAttributeValue("netlogon"))
}

// parseSite reads a NETLOGON_SAM_LOGON_RESPONSE_EX, [MS-ADTS] section 6.3.1.9: an operation code of 4 bytes, flags, the GUID of
// the domain, and eight names as in DNS messages, of which the last is the site of the client.
func parseSite(reply []byte) (name string, near bool, err error) {
	const names, operation, closest, start = 8, 23, 0x80, 24
	if len(reply) < start || binary.LittleEndian.Uint16(reply) != operation {
		return "", false, errors.New("the reply to the ping is unreadable")
	}
	near = binary.LittleEndian.Uint32(reply[4:])&closest != 0
	at := start
	for range names {
		if name, at, err = compressed(reply, at); err != nil {
			return "", false, err
		}
	}
	return name, near, nil
}

// compressed reads a name of RFC 1035, section 4.1.4, and returns where it ends.
func compressed(message []byte, at int) (name string, end int, err error) {
	const pointer, longest, parts = 0xc0, 63, 128 // a name of 255 bytes has fewer labels than parts
	var labels []string
	for range parts {
		if at >= len(message) {
			break
		}
		size := int(message[at])
		next := at + 1 + size
		switch {
		case size == 0:
			if end == 0 {
				end = next
			}
			return strings.Join(labels, "."), end, nil
		case size >= pointer && at+1 < len(message):
			if end == 0 {
				end = at + 2
			}
			at = (size&^pointer)<<8 | int(message[at+1])
		case size <= longest && next <= len(message):
			labels = append(labels, string(message[at+1:next]))
			at = next
		default:
			return "", 0, errors.New("a label of a name is unreadable")
		}
	}
	return "", 0, errors.New("a name does not end")
}
