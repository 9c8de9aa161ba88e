package kerberos

import (
	"bytes"
	"encoding/asn1"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/asn1tools"
	"github.com/jcmturner/gokrb5/v8/crypto"
	"github.com/jcmturner/gokrb5/v8/iana/asnAppTag"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

// acceptor is the service's side of a context, written from RFC 4121.
type acceptor struct {
	session, key types.EncryptionKey
	subkey       byte // the flag
	sent         uint64
	seen         types.Authenticator
}

// The key usages of RFC 4120, section 7.5.1, and of RFC 4121, section 2.
const (
	apReqAuthenticator = 11
	apRepPart          = 12
	acceptorSeal       = 22
	initiatorSeal      = 24
)

// The flags of a token, RFC 4121, section 4.2.2.
const (
	sentByAcceptor = 1
	sealedFlag     = 2
	subkeyFlag     = 4
)

func aes256(fill byte) types.EncryptionKey {
	return types.EncryptionKey{KeyType: 18, KeyValue: bytes.Repeat([]byte{fill}, 32)}
}

func ticketFor(session types.EncryptionKey) *Ticket {
	return &Ticket{
		Service: "ldap/dc1.example.test", account: "NODE$", session: session,
		ticket: messages.Ticket{
			TktVNO: 5, Realm: "EXAMPLE.TEST", SName: serviceName("ldap/dc1.example.test"),
			EncPart: types.EncryptedData{EType: 18, KVNO: 1, Cipher: []byte("opaque")},
		},
	}
}

// begin reads the first token of a context.
func begin(t testing.TB, binding []byte) (*Context, *acceptor) {
	t.Helper()
	session := aes256(1)
	c, token, err := ticketFor(session).Begin(binding)
	require.NoError(t, err)
	// RFC 2743, section 3.1: [APPLICATION 0], the mechanism, and then the token.
	var outer asn1.RawValue
	rest, err := asn1.Unmarshal(token, &outer)
	require.NoError(t, err)
	require.Empty(t, rest)
	require.Equal(t, [2]int{asn1.ClassApplication, 0}, [2]int{outer.Class, outer.Tag})
	var oid asn1.ObjectIdentifier
	body, err := asn1.Unmarshal(outer.Bytes, &oid)
	require.NoError(t, err)
	require.Equal(t, "1.2.840.113554.1.2.2", oid.String())
	require.Equal(t, []byte{1, 0}, body[:2])
	var request messages.APReq
	require.NoError(t, request.Unmarshal(body[2:]))
	require.Equal(t, byte(0x20), request.APOptions.Bytes[0], "mutual authentication is demanded")
	plain, err := crypto.DecryptEncPart(request.EncryptedAuthenticator, session, apReqAuthenticator)
	require.NoError(t, err)
	a := &acceptor{session: session, key: session, sent: 4711}
	require.NoError(t, a.seen.Unmarshal(plain))
	require.Equal(t, "NODE$", a.seen.CName.PrincipalNameString())
	require.EqualValues(t, 0x8003, a.seen.Cksum.CksumType)
	return c, a
}

// reply is the second token. Change changes what it says; nil changes nothing.
func (a *acceptor) reply(t testing.TB, subkey *types.EncryptionKey, change func(*repPart)) []byte {
	t.Helper()
	part := repPart{CTime: a.seen.CTime, Cusec: a.seen.Cusec, Number: int64(a.sent)}
	if subkey != nil {
		a.key, a.subkey = *subkey, subkeyFlag
		part.Subkey = key{int(subkey.KeyType), subkey.KeyValue}
	}
	if change != nil {
		change(&part)
	}
	plain, err := asn1.Marshal(part)
	require.NoError(t, err)
	encrypted, err := crypto.GetEncryptedData(asn1tools.AddASNAppTag(plain, asnAppTag.EncAPRepPart), a.session, apRepPart, 0)
	require.NoError(t, err)
	body, err := asn1.Marshal(apRep{5, 15, cipher{int(encrypted.EType), encrypted.Cipher}})
	require.NoError(t, err)
	return framed(t, []byte{2, 0}, asn1tools.AddASNAppTag(body, asnAppTag.APREP))
}

// framed is a token of the mechanism.
func framed(t testing.TB, kind, body []byte) []byte {
	t.Helper()
	oid, err := asn1.Marshal(asn1.ObjectIdentifier{1, 2, 840, 113554, 1, 2, 2})
	require.NoError(t, err)
	return asn1tools.AddASNAppTag(append(append(oid, kind...), body...), 0)
}

type (
	key struct {
		Type  int    `asn1:"explicit,tag:0"`
		Value []byte `asn1:"explicit,tag:1"`
	}
	cipher struct {
		Type   int    `asn1:"explicit,tag:0"`
		Cipher []byte `asn1:"explicit,tag:2"`
	}
	apRep struct {
		Version int    `asn1:"explicit,tag:0"`
		Kind    int    `asn1:"explicit,tag:1"`
		Part    cipher `asn1:"explicit,tag:2"`
	}
	repPart struct {
		CTime  time.Time `asn1:"generalized,explicit,tag:0"`
		Cusec  int       `asn1:"explicit,tag:1"`
		Subkey key       `asn1:"optional,explicit,tag:2"`
		Number int64     `asn1:"explicit,tag:3"`
	}
)

// token protects data for the initiator, RFC 4121, section 4.2.4. Rotation is the right rotation count.
func (a *acceptor) token(t testing.TB, data []byte, flags byte, rotation uint16) []byte {
	t.Helper()
	head := append([]byte{5, 4, flags | a.subkey, 0xff, 0, 0, 0, 0}, binary.BigEndian.AppendUint64(nil, a.sent)...)
	a.sent++
	var body []byte
	if flags&sealedFlag != 0 {
		binary.BigEndian.PutUint16(head[4:], 3) // filler between the data and the header
		plain := append(append(append([]byte{}, data...), "xyz"...), head...)
		encrypted, err := crypto.GetEncryptedData(plain, a.key, acceptorSeal, 0)
		require.NoError(t, err)
		body = encrypted.Cipher
	} else {
		etype, err := crypto.GetEtype(a.key.KeyType)
		require.NoError(t, err)
		sum, err := etype.GetChecksumHash(a.key.KeyValue, append(append([]byte{}, data...), head...), acceptorSeal)
		require.NoError(t, err)
		binary.BigEndian.PutUint16(head[4:], uint16(len(sum)))
		body = append(append([]byte{}, data...), sum...)
	}
	binary.BigEndian.PutUint16(head[6:], rotation)
	at := len(body) - int(rotation)%len(body)
	return append(head, append(append([]byte{}, body[at:]...), body[:at]...)...)
}

// open reads a token of the initiator.
func (a *acceptor) open(t testing.TB, token []byte, number uint64, flags byte) []byte {
	t.Helper()
	head := append([]byte{5, 4, flags | a.subkey, 0xff, 0, 0, 0, 0}, binary.BigEndian.AppendUint64(nil, number)...)
	if flags&sealedFlag != 0 {
		require.Equal(t, head, token[:16])
		plain, err := crypto.DecryptMessage(token[16:], a.key, initiatorSeal)
		require.NoError(t, err)
		require.Equal(t, head, plain[len(plain)-16:])
		return plain[:len(plain)-16]
	}
	etype, err := crypto.GetEtype(a.key.KeyType)
	require.NoError(t, err)
	size := len(token) - int(binary.BigEndian.Uint16(token[4:]))
	data := token[16:size]
	sum, err := etype.GetChecksumHash(a.key.KeyValue, append(append([]byte{}, data...), head...), initiatorSeal)
	require.NoError(t, err)
	require.Equal(t, sum, token[size:])
	return data
}
