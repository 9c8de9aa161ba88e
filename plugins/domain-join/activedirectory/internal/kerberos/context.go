package kerberos

import (
	"crypto/hmac"
	"crypto/md5" //nolint:gosec // RFC 4121 demands it for the channel binding
	"encoding/asn1"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/chksumtype"
	"github.com/jcmturner/gokrb5/v8/iana/flags"
	"github.com/jcmturner/gokrb5/v8/iana/keyusage"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
)

// Context is a GSSAPI security context of RFC 4121 with mutual authentication. Its tokens arrive in the order in which they
// were sent: any other number is a replay or a loss. It is not safe for concurrent use, but Wrap and Unwrap may run at once.
type Context struct {
	auth           types.Authenticator
	session, key   types.EncryptionKey
	sent, received uint64
	acceptorSubkey byte
	established    bool
}

const (
	fromAcceptor, isSealed, hasSubkey = 1, 2, 4 // flags of a token
	headerSize                        = 16

	mutual, replay, sequence, confidentiality, integrity = 2, 4, 8, 16, 32 // flags of a context
)

// Begin returns a context with its first token. The binding ties it to a TLS connection; nil without one.
func (t *Ticket) Begin(binding []byte) (*Context, []byte, error) {
	checksum := make([]byte, 24)
	binary.LittleEndian.PutUint32(checksum, 16)
	if binding != nil {
		copy(checksum[4:], bindingDigest(binding))
	}
	binary.LittleEndian.PutUint32(checksum[20:], mutual|replay|sequence|confidentiality|integrity)
	auth, request, err := t.request(func(a *types.Authenticator) error {
		a.Cksum = types.Checksum{CksumType: chksumtype.GSSAPI, Checksum: checksum}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	types.SetFlag(&request.APOptions, flags.APOptionMutualRequired)
	body, err := request.Marshal()
	if err != nil {
		return nil, nil, err
	}
	token, err := asn1.Marshal(mechanism())
	if err != nil {
		return nil, nil, err
	}
	token = append(append(token, 1, 0), body...)                                                                         // 1, 0 is a request
	return &Context{auth: auth, session: t.session, sent: uint64(auth.SeqNumber)}, asn1tools.AddASNAppTag(token, 0), nil //nolint:gosec // 30 bits
}

// request authenticates the account of the ticket to its service.
func (t *Ticket) request(complete func(*types.Authenticator) error) (types.Authenticator, messages.APReq, error) {
	auth, err := types.NewAuthenticator(t.realm(), principal(t.account))
	if err != nil {
		return auth, messages.APReq{}, err
	}
	if err := complete(&auth); err != nil {
		return auth, messages.APReq{}, err
	}
	request, err := messages.NewAPReq(t.ticket, t.session, auth)
	return auth, request, err
}

func (t *Ticket) realm() string { return t.ticket.Realm }

func mechanism() asn1.ObjectIdentifier { return asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2} }

// bindingDigest is that of RFC 4121, section 4.1.1.2, for a binding without addresses.
func bindingDigest(binding []byte) []byte {
	text := binary.LittleEndian.AppendUint32(make([]byte, 16), uint32(len(binding))) //nolint:gosec // a hash with its name
	digest := md5.Sum(append(text, binding...))                                      //nolint:gosec // see the import
	return digest[:]
}

// Accept reads the reply to the first token, which proves that the service has the key of its account.
func (c *Context) Accept(token []byte) error {
	var outer asn1.RawValue
	if _, err := asn1.Unmarshal(token, &outer); err != nil {
		return errors.New("the reply of the service is unreadable")
	}
	var id asn1.ObjectIdentifier
	body, err := asn1.Unmarshal(outer.Bytes, &id)
	if err != nil || !id.Equal(mechanism()) || len(body) < 2 {
		return errors.New("the reply of the service is unreadable")
	}
	if body[0] == 3 { // an error
		var refused messages.KRBError
		if err := unmarshal(&refused, body[2:]); err != nil {
			return err
		}
		return refusal(refused)
	}
	var reply messages.APRep
	if err := unmarshal(&reply, body[2:]); err != nil {
		return err
	}
	var part messages.EncAPRepPart
	if err := open(&part, reply.EncPart, c.session, keyusage.AP_REP_ENCPART); err != nil {
		return err
	}
	if !part.CTime.Equal(c.auth.CTime.Truncate(1e9)) || part.Cusec != c.auth.Cusec {
		return errors.New("the reply of the service belongs to another request")
	}
	c.key, c.received, c.established = c.session, uint64(uint32(part.SequenceNumber)), true //nolint:gosec // 32 bits
	if part.Subkey.KeyType != 0 {
		c.key, c.acceptorSubkey = part.Subkey, hasSubkey
	}
	return nil
}

// Wrap protects data: it signs it, and encrypts it if seal is set.
func (c *Context) Wrap(data []byte, seal bool) ([]byte, error) {
	if !c.established {
		return nil, errors.New("the security context is not established")
	}
	head := []byte{5, 4, c.acceptorSubkey, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	binary.BigEndian.PutUint64(head[8:], c.sent)
	c.sent++
	if seal {
		head[2] |= isSealed
		encrypted, err := crypto.GetEncryptedData(append(append([]byte{}, data...), head...), c.key, keyusage.GSSAPI_INITIATOR_SEAL, 0)
		return append(head, encrypted.Cipher...), err
	}
	sum, err := checksum(c.key, data, head, keyusage.GSSAPI_INITIATOR_SEAL)
	binary.BigEndian.PutUint16(head[4:], uint16(len(sum))) //nolint:gosec // 12 bytes
	return append(append(head, data...), sum...), err
}

// checksum covers the data and the header without its two counts.
func checksum(key types.EncryptionKey, data, head []byte, usage uint32) ([]byte, error) {
	etype, err := crypto.GetEtype(key.KeyType)
	if err != nil {
		return nil, err
	}
	covered := append(append([]byte{}, data...), head...)
	clear(covered[len(data)+4 : len(data)+8])
	return etype.GetChecksumHash(key.KeyValue, covered, usage)
}

// Unwrap returns the data of a token, which must be encrypted if sealed is set.
func (c *Context) Unwrap(token []byte, sealed bool) ([]byte, error) {
	if !c.established || len(token) <= headerSize {
		return nil, errors.New("a token is too short")
	}
	head, body := token[:headerSize], token[headerSize:]
	if head[0] != 5 || head[1] != 4 || head[2]&fromAcceptor == 0 || head[2]&hasSubkey != c.acceptorSubkey ||
		sealed && head[2]&isSealed == 0 {
		return nil, errors.New("a token is not protected as agreed")
	}
	if number := binary.BigEndian.Uint64(head[8:]); number != c.received {
		return nil, fmt.Errorf("a token has the number %d instead of %d: the connection was tampered with", number, c.received)
	}
	c.received++
	extra, rotated := int(binary.BigEndian.Uint16(head[4:])), int(binary.BigEndian.Uint16(head[6:]))%len(body)
	body = append(append([]byte{}, body[rotated:]...), body[:rotated]...)
	if head[2]&isSealed == 0 {
		if extra > len(body) {
			return nil, errors.New("a token is too short")
		}
		data, sum := body[:len(body)-extra], body[len(body)-extra:]
		if want, err := checksum(c.key, data, head, keyusage.GSSAPI_ACCEPTOR_SEAL); err != nil || !hmac.Equal(want, sum) {
			return nil, errors.New("a token has a wrong checksum")
		}
		return data, nil
	}
	plain, err := decrypt(body, c.key, keyusage.GSSAPI_ACCEPTOR_SEAL)
	if err != nil {
		return nil, err
	}
	end := len(plain) - headerSize - extra
	if end < 0 {
		return nil, errors.New("a token is too short")
	}
	if inner := plain[end+extra:]; !hmac.Equal(inner[:6], head[:6]) || !hmac.Equal(inner[8:], head[8:]) {
		return nil, errors.New("a token has another header inside")
	}
	return plain[:end], nil
}
