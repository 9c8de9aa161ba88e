package kerberos

import (
	"bytes"
	"context"
	"encoding/asn1"
	"encoding/binary"
	"io"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/iana/errorcode"
	"github.com/jcmturner/gokrb5/v8/iana/etypeID"
	"github.com/jcmturner/gokrb5/v8/iana/patype"
	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	machine "github.com/machineadm/machineadm/internal/require"
)

// hostile returns a client whose controller answers each request with these replies in turn, the last one again and again.
func hostile(replies ...[]byte) *Client {
	return &Client{
		Realm: "EXAMPLE.TEST", Host: "dc.example.test", EncryptionTypes: []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96},
		dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			reply := replies[0]
			replies = replies[min(1, len(replies)-1):]
			go func() {
				defer func() { _ = theirs.Close() }()
				head := make([]byte, 4)
				if _, err := io.ReadFull(theirs, head); err != nil {
					return
				}
				if _, err := io.CopyN(io.Discard, theirs, int64(binary.BigEndian.Uint32(head))); err != nil {
					return
				}
				_, _ = theirs.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(reply))), reply...)) //nolint:gosec // of the test
			}()
			return ours, nil
		},
	}
}

// refusedWith is an error with data.
func refusedWith(t testing.TB, data []byte) []byte {
	t.Helper()
	e := messages.NewKRBError(serviceName("krbtgt/EXAMPLE.TEST"), "EXAMPLE.TEST", errorcode.KDC_ERR_PREAUTH_REQUIRED, "")
	e.EData = data
	body, err := e.Marshal()
	require.NoError(t, err)
	return body
}

// salted asks for preauthentication with these salts.
func salted(t testing.TB, salts types.ETypeInfo2) []byte {
	t.Helper()
	info, err := asn1.Marshal([]types.ETypeInfo2Entry(salts))
	require.NoError(t, err)
	data, err := asn1.Marshal([]types.PAData{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: info}})
	require.NoError(t, err)
	return refusedWith(t, data)
}

// slowest returns salts with the most iterations.
func slowest(count int) (salts types.ETypeInfo2) {
	for range count {
		for _, etype := range []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96} {
			salts = append(salts, types.ETypeInfo2Entry{EType: etype, Salt: "salt", S2KParams: []byte{0, 1, 0, 0}})
		}
	}
	return salts
}

// TestManySalts: a controller that is not authenticated gets one derivation for each encryption type, however many salts it sends.
func TestManySalts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), machine.Timeout(10*time.Second)) // the derivations of all salts take minutes
	defer cancel()
	reply := salted(t, slowest(5000))
	keys, err := hostile(reply).Keys(ctx, "account", "password")
	require.NoError(t, err)
	require.Len(t, keys, 2)
	assert.Equal(t, []int32{etypeID.AES256_CTS_HMAC_SHA1_96, etypeID.AES128_CTS_HMAC_SHA1_96}, []int32{keys[0].Type, keys[1].Type})
	first, err := derive(ctx, "password", slowest(1))
	require.NoError(t, err)
	assert.Equal(t, first, keys, "of the first salt of each")
	_, err = hostile(reply, refusedWith(t, nil)).Authenticate(ctx, Identity{Name: "account", Password: []byte("password")}, "")
	var refused *Error
	require.ErrorAs(t, err, &refused)
}

// TestDerivationEndsWithContext: the context is checked before each derivation.
func TestDerivationEndsWithContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	keys, err := derive(ctx, "password", slowest(1))
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, keys)
}

// TestMemoryBeforeAuthentication: the longest replies, of elements as small as possible, cost little.
func TestMemoryBeforeAuthentication(t *testing.T) {
	const most = 16 << 20 // of 32 MiB, which a plugin has in all
	sequence := func(element []byte, size int) []byte {
		data, err := asn1.Marshal(asn1.RawValue{Tag: asn1.TagSequence, IsCompound: true, Bytes: bytes.Repeat(element, size/len(element))})
		require.NoError(t, err)
		return data
	}
	room := maxMessage - 1<<10
	salt := []byte{0x30, 5, 0xa0, 3, 2, 1, 18}
	offers, err := asn1.Marshal([]types.PAData{{PADataType: patype.PA_ETYPE_INFO2, PADataValue: sequence(salt, room)}})
	require.NoError(t, err)
	name := messages.NewKRBError(types.PrincipalName{NameString: make([]string, room/2)}, "R", errorcode.KDC_ERR_PREAUTH_REQUIRED, "")
	names, err := name.Marshal()
	require.NoError(t, err)
	for what, reply := range map[string][]byte{
		"salts":          refusedWith(t, offers),
		"offers":         refusedWith(t, sequence([]byte{0x30, 9, 0xa1, 3, 2, 1, 1, 0xa2, 2, 4, 0}, room)),
		"parts of names": names,
		"an endless one": bytes.Repeat([]byte{0x30, 0x80}, room/2),
	} {
		require.Less(t, len(reply), maxMessage, what)
		c := hostile(reply)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := time.Now()
		_, err := c.Authenticate(t.Context(), Identity{Name: "account", Password: []byte("password")}, "")
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		t.Logf("%s: %d KiB in %s: %.100v", what, allocated>>10, time.Since(began).Round(time.Millisecond), err)
		assert.Less(t, allocated, uint64(most), what)
	}
}
