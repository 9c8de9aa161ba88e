package kerberos

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"testing"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

// passwordReply is a reply of RFC 3244, section 2, with the result and a text; the AP-REP is not read.
func passwordReply(t testing.TB, key types.EncryptionKey, data []byte) []byte {
	t.Helper()
	private := messages.NewKRBPriv(messages.EncKrbPrivPart{
		UserData: data, SAddress: types.HostAddress{AddrType: 2, Address: make([]byte, 4)},
	})
	require.NoError(t, private.EncryptEncPart(key))
	body, err := private.Marshal()
	require.NoError(t, err)
	return wrapped([]byte("AP-REP"), body)
}

func wrapped(reply, body []byte) []byte {
	head := binary.BigEndian.AppendUint16(nil, uint16(6+len(reply)+len(body)))
	head = binary.BigEndian.AppendUint16(append(head, 0, 1), uint16(len(reply)))
	return slices.Concat(head, reply, body)
}

// passwordRefusal is a reply without encryption.
func passwordRefusal(t testing.TB, code int32, data []byte) []byte {
	t.Helper()
	e := messages.NewKRBError(serviceName(PasswordService), "EXAMPLE.TEST", code, "")
	e.EData = data
	body, err := e.Marshal()
	require.NoError(t, err)
	return wrapped(nil, body)
}

func TestPasswordResult(t *testing.T) {
	t.Parallel()
	key := aes256(7)
	done := passwordReply(t, key, []byte{0, 0, 'o', 'k'})
	for name, tt := range map[string]struct {
		reply []byte
		want  uint16
		err   string
	}{
		"changed":                   {reply: done},
		"refused":                   {reply: passwordReply(t, key, []byte{0, 4}), want: 4},
		"refused without a session": {reply: passwordRefusal(t, 60, []byte{0, 3, 'x'}), want: 3},
		"an error":                  {reply: passwordRefusal(t, 37, nil), err: "Kerberos error 37"},
		"an error with a result of 0": {
			reply: passwordRefusal(t, 60, []byte{0, 0}), err: "Kerberos error 60",
		},
		"an error with a status": {
			reply: passwordRefusal(t, 18, status(t, 3, []byte{0x72, 0, 0, 0xc0})), err: "Kerberos error 18, status 0xc0000072",
		},
		"our own request":   {reply: passwordReply(t, key, []byte("c4n4ry-password")), err: "unreadable"},
		"empty":             {err: "unreadable"},
		"short":             {reply: done[:5], err: "unreadable"},
		"only a head":       {reply: []byte{0, 6, 0, 1, 0, 0}, err: "unreadable"},
		"no private part":   {reply: done[:12], err: "unreadable"},
		"cut":               {reply: done[:len(done)-1], err: "unreadable"},
		"no result":         {reply: passwordReply(t, key, []byte{0}), err: "unreadable"},
		"another key":       {reply: passwordReply(t, aes256(8), []byte{0, 0}), err: "unreadable"},
		"a wrong length":    {reply: []byte{0, 9, 0, 1, 0, 9, 1, 2, 3}, err: "unreadable"},
		"a short cipher":    {reply: wrapped([]byte("AP-REP"), shortPrivate(t)), err: "unreadable"},
		"success, not said": {reply: passwordRefusal(t, 0, []byte{0, 0}), err: "Kerberos error 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := passwordResult(tt.reply, key)
			if tt.err == "" {
				require.NoError(t, err)
				require.Equal(t, tt.want, got)
				return
			}
			require.ErrorContains(t, err, tt.err)
			require.NotContains(t, err.Error(), "c4n4ry")
		})
	}
	require.EqualError(t, &PasswordError{Result: 4}, "password change refused, result 4")
}

// shortPrivate is a message whose encrypted part is shorter than its checksum.
func shortPrivate(t testing.TB) []byte {
	t.Helper()
	private := messages.NewKRBPriv(messages.EncKrbPrivPart{})
	private.EncPart = types.EncryptedData{EType: 18, Cipher: []byte{1, 2, 3}}
	body, err := private.Marshal()
	require.NoError(t, err)
	return body
}

// TestDerive: the salts come before anything is authenticated, so they bound neither the time of the client nor its security.
func TestDerive(t *testing.T) {
	t.Parallel()
	salt := func(etype int32, parameters ...byte) types.ETypeInfo2 {
		return types.ETypeInfo2{{EType: etype, Salt: "EXAMPLE.TESThostnode.example.test", S2KParams: parameters}}
	}
	ordinary, err := derive(t.Context(), "password", salt(18))
	require.NoError(t, err)
	explicit, err := derive(t.Context(), "password", salt(18, 0, 0, 0x10, 0))
	require.NoError(t, err)
	require.Equal(t, ordinary, explicit)
	more, err := derive(t.Context(), "password", salt(18, 0, 0, 0x20, 0))
	require.NoError(t, err)
	require.False(t, more[0].Equal(ordinary[0]))
	for _, parameters := range [][]byte{{0, 0, 0, 0}, {0, 0, 0, 1}, {0, 0, 0x0f, 0xff}, {0xff, 0xff, 0xff, 0xff}, {1}} {
		_, err := derive(t.Context(), "c4n4ry", salt(18, parameters...))
		require.ErrorContains(t, err, "iterations", "%x", parameters)
		require.NotContains(t, err.Error(), "c4n4ry")
	}
	_, err = derive(t.Context(), "c4n4ry", salt(99))
	require.Error(t, err)
	require.NotContains(t, err.Error(), "c4n4ry")
	rc4, err := derive(t.Context(), "password", salt(23))
	require.NoError(t, err)
	require.Equal(t, "8846f7eaee8fb117ad06bdd830b7586c", hex.EncodeToString(rc4[0].Value)) // the NT hash
}
