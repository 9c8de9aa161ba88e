package kerberos

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// PasswordError is the refusal of a new password, with the result of RFC 3244: 2 is the quality of the password, 3 and 5 are
// missing rights, 4 is a rule such as its minimum age.
type PasswordError struct{ Result uint16 }

// Error implements error.
func (e *PasswordError) Error() string {
	return fmt.Sprintf("password change refused, result %d", e.Result)
}

// ChangePassword changes the password of the account of the ticket, which must be one for PasswordService.
//
// The request names no account, as version 1 of the protocol has it. With a name, controllers demand the rights of an
// administrator.
func (c *Client) ChangePassword(ctx context.Context, t *Ticket, password string) error {
	auth, request, err := t.request(func(a *types.Authenticator) error {
		etype, err := crypto.GetEtype(t.session.KeyType)
		if err != nil {
			return err
		}
		return a.GenerateSeqNumberAndSubKey(t.session.KeyType, etype.GetKeyByteSize())
	})
	if err != nil {
		return err
	}
	private := messages.NewKRBPriv(messages.EncKrbPrivPart{
		UserData: []byte(password), Timestamp: auth.CTime, Usec: auth.Cusec, SequenceNumber: auth.SeqNumber,
		SAddress: types.HostAddressFromNetIP(net.IPv4(127, 0, 0, 1)), // controllers ignore it, because addresses are translated
	})
	if err := private.EncryptEncPart(auth.SubKey); err != nil {
		return err
	}
	ap, err := request.Marshal()
	if err != nil {
		return err
	}
	priv, err := private.Marshal()
	if err != nil {
		return err
	}
	const version = 1
	message := binary.BigEndian.AppendUint16(nil, uint16(6+len(ap)+len(priv))) //nolint:gosec // a ticket fits by the protocol
	message = binary.BigEndian.AppendUint16(message, version)
	message = binary.BigEndian.AppendUint16(message, uint16(len(ap))) //nolint:gosec // likewise
	reply, err := c.send(ctx, passwordPort, append(append(message, ap...), priv...))
	if err != nil {
		return err
	}
	result, err := passwordResult(reply, auth.SubKey)
	if err == nil && result != 0 {
		err = &PasswordError{Result: result}
	}
	return err
}

// passwordResult reads a reply: its length, its version, the length of a message that is none in the reply of an error, and the
// encrypted result.
func passwordResult(reply []byte, key types.EncryptionKey) (uint16, error) {
	unreadable := errors.New("the reply of the password service is unreadable")
	if len(reply) < 6 {
		return 0, unreadable
	}
	rest, size := reply[6:], int(binary.BigEndian.Uint16(reply[4:]))
	if size > len(rest) {
		return 0, unreadable
	}
	if size == 0 {
		var refused messages.KRBError
		if unmarshal(&refused, rest) != nil {
			return 0, unreadable
		}
		if code, ok := result(refused.EData); ok && code != 0 {
			return code, nil
		}
		return 0, refusal(refused)
	}
	var private messages.KRBPriv
	var part messages.EncKrbPrivPart
	if unmarshal(&private, rest[size:]) != nil || open(&part, private.EncPart, key, keyusage.KRB_PRIV_ENCPART) != nil {
		return 0, unreadable
	}
	code, ok := result(part.UserData)
	if !ok {
		return 0, unreadable
	}
	return code, nil
}

// result reads a result of RFC 3244. Other data can be a Windows status, or the new password if the request was sent back.
func result(data []byte) (code uint16, ok bool) {
	const last, other = 7, 0xffff
	if len(data) < 2 {
		return 0, false
	}
	code = binary.BigEndian.Uint16(data)
	return code, code <= last || code == other
}
