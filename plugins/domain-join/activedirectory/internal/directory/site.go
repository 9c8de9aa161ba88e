package directory

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
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
	const pointer = 0xc0
	var labels []string
	for jumps := 0; ; {
		if at >= len(message) {
			return "", 0, fmt.Errorf("a name ends at byte %d of %d", at, len(message))
		}
		size := int(message[at])
		switch {
		case size == 0:
			if jumps == 0 {
				end = at + 1
			}
			return strings.Join(labels, "."), end, nil
		case size&pointer == pointer:
			if at+1 >= len(message) || jumps > len(message) {
				return "", 0, errors.New("a name has a wrong pointer")
			}
			if jumps == 0 {
				end = at + 2
			}
			jumps++
			at = (size&^pointer)<<8 | int(message[at+1])
		case at+1+size > len(message):
			return "", 0, errors.New("a label is too long")
		default:
			labels = append(labels, string(message[at+1:at+1+size]))
			if at += 1 + size; len(labels) > len(message) {
				return "", 0, errors.New("a name does not end")
			}
		}
	}
}
