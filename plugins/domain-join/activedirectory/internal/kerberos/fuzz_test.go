package kerberos

import (
	"testing"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/jcmturner/gokrb5/v8/types"
	"github.com/stretchr/testify/require"
)

// FuzzUnwrap: nothing but the acceptor's token is accepted.
func FuzzUnwrap(f *testing.F) {
	seed, a := established(f, true)
	number := a.sent
	var tokens [][]byte
	for _, flags := range []byte{sentByAcceptor, sentByAcceptor | sealedFlag} {
		a.sent = number
		token := a.token(f, []byte("data"), flags, 3)
		tokens = append(tokens, token)
		f.Add(token, flags&sealedFlag != 0)
	}
	f.Add([]byte("\x05\x04\x07\xff0000000000000000000"), true)
	f.Fuzz(func(t *testing.T, token []byte, sealed bool) {
		c := *seed
		data, err := c.Unwrap(token, sealed)
		if err == nil {
			require.Equal(t, "data", string(data))
			require.Contains(t, [][]byte{tokens[0][:6], tokens[1][:6]}, token[:6])
		}
	})
}

// FuzzPasswordResult: a result is one of RFC 3244.
func FuzzPasswordResult(f *testing.F) {
	key := aes256(7)
	f.Add(passwordReply(f, key, []byte{0, 0}))
	f.Add(passwordRefusal(f, 60, []byte{0, 3, 'x'}))
	f.Add(passwordRefusal(f, 18, status(f, 3, []byte{0x72, 0, 0, 0xc0})))
	f.Add(wrapped([]byte("AP-REP"), shortPrivate(f)))
	f.Fuzz(func(t *testing.T, reply []byte) {
		if code, err := passwordResult(reply, key); err == nil {
			require.True(t, code <= 7 || code == 0xffff)
		}
	})
}

// FuzzRefusal reads an error and the salts that can come with it.
func FuzzRefusal(f *testing.F) {
	for _, data := range [][]byte{nil, status(f, 3, make([]byte, 12)), status(f, 19, nil)} {
		e := messages.NewKRBError(serviceName("krbtgt/EXAMPLE.TEST"), "EXAMPLE.TEST", 25, "")
		e.EData = data
		body, err := e.Marshal()
		require.NoError(f, err)
		f.Add(body)
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		var e messages.KRBError
		if unmarshal(&e, data) == nil {
			_ = refusal(e).Error()
			data = e.EData
		}
		var offered types.PADataSequence
		if unmarshal(&offered, data) != nil {
			return
		}
		for _, o := range offered {
			var info types.ETypeInfo2
			_ = unmarshal(&info, o.PADataValue)
		}
	})
}

// FuzzReply reads the messages that a controller sends before it is authenticated, with their encrypted parts.
func FuzzReply(f *testing.F) {
	session := aes256(1)
	f.Add(wrapped(nil, shortPrivate(f))[6:])
	_, a := begin(f, nil)
	f.Add(a.reply(f, nil, nil)[17:])
	f.Fuzz(func(_ *testing.T, data []byte) {
		var as messages.ASRep
		var tgs messages.TGSRep
		var ap messages.APRep
		var private messages.KRBPriv
		for _, reply := range []struct {
			message
			part *types.EncryptedData
			into message
		}{
			{&as, &as.EncPart, &messages.EncKDCRepPart{}},
			{&tgs, &tgs.EncPart, &messages.EncKDCRepPart{}},
			{&ap, &ap.EncPart, &messages.EncAPRepPart{}},
			{&private, &private.EncPart, &messages.EncKrbPrivPart{}},
		} {
			if unmarshal(reply.message, data) == nil {
				_ = open(reply.into, *reply.part, session, 3)
			}
			_ = unmarshal(reply.into, data)
		}
	})
}
