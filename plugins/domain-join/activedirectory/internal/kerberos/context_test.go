package kerberos

import (
	"crypto/md5" //nolint:gosec // RFC 4121 demands it
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jcmturner/gokrb5/v8/messages"
	"github.com/stretchr/testify/require"
)

// established returns both sides of a context; with a subkey the acceptor chooses its key.
func established(t testing.TB, withSubkey bool) (*Context, *acceptor) {
	t.Helper()
	c, a := begin(t, nil)
	_, err := c.Wrap([]byte("early"), true)
	require.Error(t, err)
	_, err = c.Unwrap(make([]byte, 100), false)
	require.Error(t, err)
	subkey := aes256(2)
	if withSubkey {
		require.NoError(t, c.Accept(a.reply(t, &subkey, nil)))
	} else {
		require.NoError(t, c.Accept(a.reply(t, nil, nil)))
	}
	return c, a
}

// TestProtect: each side reads what the other protects, in any form that RFC 4121 allows.
func TestProtect(t *testing.T) {
	t.Parallel()
	for _, withSubkey := range []bool{false, true} {
		c, a := established(t, withSubkey)
		number := uint64(a.seen.SeqNumber)
		for i, text := range []string{"first", "", strings.Repeat("long ", 20000)} {
			for _, flags := range []byte{0, sealedFlag} {
				token, err := c.Wrap([]byte(text), flags != 0)
				require.NoError(t, err)
				require.Equal(t, text, string(a.open(t, token, number, flags)), "%d", i)
				number++
				for _, rotation := range []uint16{0, 1, 28, 65535} {
					got, err := c.Unwrap(a.token(t, []byte(text), sentByAcceptor|flags, rotation), flags != 0)
					require.NoError(t, err, "flags %d, rotation %d", flags, rotation)
					require.Equal(t, text, string(got))
				}
			}
		}
		got, err := c.Unwrap(a.token(t, []byte("sealed"), sentByAcceptor|sealedFlag, 0), false)
		require.NoError(t, err, "more protection than demanded")
		require.Equal(t, "sealed", string(got))
	}
}

// TestEdited: a token that was changed on its way is refused, sealed or signed.
func TestEdited(t *testing.T) {
	t.Parallel()
	flip := func(at int) func([]byte) []byte {
		return func(token []byte) []byte {
			token[(at+len(token))%len(token)] ^= 0x40
			return token
		}
	}
	for name, edit := range map[string]func(token []byte) []byte{
		"empty":              func([]byte) []byte { return nil },
		"a header alone":     func(token []byte) []byte { return token[:16] },
		"one byte":           func(token []byte) []byte { return token[:17] },
		"less than a hash":   func(token []byte) []byte { return token[:16+11] },
		"a hash alone":       func(token []byte) []byte { return token[:16+12] },
		"less than a block":  func(token []byte) []byte { return token[:16+12+15] },
		"a block and a hash": func(token []byte) []byte { return token[:16+12+16] },
		"cut":                func(token []byte) []byte { return token[:len(token)-1] },
		"longer":             func(token []byte) []byte { return append(token, 0) },
		"another kind":       flip(0),
		"flags":              flip(2),
		"without a subkey":   func(token []byte) []byte { token[2] &^= subkeyFlag; return token },
		"sealed or signed":   func(token []byte) []byte { token[2] ^= sealedFlag; return token },
		"filler":             flip(3),
		"a large count":      flip(4),
		"count":              flip(5),
		"no count":           func(token []byte) []byte { token[4], token[5] = 0, 0; return token },
		"rotation":           func(token []byte) []byte { token[7]++; return token },
		"number":             flip(15),
		"the first byte":     flip(16),
		"the last byte":      flip(-1),
	} {
		for _, flags := range []byte{0, sealedFlag} {
			t.Run(fmt.Sprint(name, flags), func(t *testing.T) {
				t.Parallel()
				c, a := established(t, true)
				token := edit(a.token(t, []byte("thirty bytes and some more of data"), sentByAcceptor|flags, 0))
				got, err := c.Unwrap(token, false)
				require.Error(t, err)
				require.Empty(t, got)
			})
		}
	}
}

// TestWrongToken: a token that the acceptor made, but not as the next one for this context, is refused.
func TestWrongToken(t *testing.T) {
	t.Parallel()
	const sealed = sentByAcceptor | sealedFlag
	data := []byte("data")
	for name, next := range map[string]func(t *testing.T, a *acceptor, before []byte) []byte{
		"replayed":           func(_ *testing.T, _ *acceptor, before []byte) []byte { return before },
		"one is lost":        func(t *testing.T, a *acceptor, _ []byte) []byte { a.sent++; return a.token(t, data, sealed, 0) },
		"an old number":      func(t *testing.T, a *acceptor, _ []byte) []byte { a.sent--; return a.token(t, data, sealed, 0) },
		"of the initiator":   func(t *testing.T, a *acceptor, _ []byte) []byte { return a.token(t, data, sealedFlag, 0) },
		"signed, not sealed": func(t *testing.T, a *acceptor, _ []byte) []byte { return a.token(t, data, sentByAcceptor, 0) },
		"of another key": func(t *testing.T, a *acceptor, _ []byte) []byte {
			a.key = aes256(9)
			return a.token(t, data, sealed, 0)
		},
		"of the session's key": func(t *testing.T, a *acceptor, _ []byte) []byte {
			a.key = a.session
			return a.token(t, data, sealed, 0)
		},
		"without a subkey": func(t *testing.T, a *acceptor, _ []byte) []byte { a.subkey = 0; return a.token(t, data, sealed, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, a := established(t, true)
			before := a.token(t, []byte("before"), sealed, 0)
			got, err := c.Unwrap(before, true)
			require.NoError(t, err)
			require.Equal(t, "before", string(got))
			got, err = c.Unwrap(next(t, a, before), true)
			require.Error(t, err)
			require.Empty(t, got)
		})
	}
}

// TestWrongUsage: a token that the initiator wrapped is none of the acceptor, even with its flag.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	for _, seal := range []bool{false, true} {
		c, a := established(t, false)
		c.sent = a.sent
		token, err := c.Wrap([]byte("data"), seal)
		require.NoError(t, err)
		_, err = c.Unwrap(token, seal)
		require.ErrorContains(t, err, "not protected as agreed")
		token[2] |= sentByAcceptor
		_, err = c.Unwrap(token, seal)
		require.Error(t, err)
	}
}

// TestAccept: only the service that has the ticket's key can answer, and only this request.
func TestAccept(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]func(t *testing.T, a *acceptor) []byte{
		"empty":    func(*testing.T, *acceptor) []byte { return nil },
		"no token": func(*testing.T, *acceptor) []byte { return []byte("LDAP") },
		"short":    func(t *testing.T, _ *acceptor) []byte { return framed(t, []byte{2}, nil) },
		"no reply": func(t *testing.T, _ *acceptor) []byte { return framed(t, []byte{2, 0}, nil) },
		"cut":      func(t *testing.T, a *acceptor) []byte { r := a.reply(t, nil, nil); return r[:len(r)-1] },
		"no time": func(t *testing.T, a *acceptor) []byte {
			return a.reply(t, nil, func(p *repPart) { p.CTime = time.Unix(0, 0).UTC() })
		},
		"another second": func(t *testing.T, a *acceptor) []byte {
			return a.reply(t, nil, func(p *repPart) { p.CTime = p.CTime.Add(time.Second) })
		},
		"another microsecond": func(t *testing.T, a *acceptor) []byte { return a.reply(t, nil, func(p *repPart) { p.Cusec ^= 1 }) },
		"another key":         func(t *testing.T, a *acceptor) []byte { a.session = aes256(9); return a.reply(t, nil, nil) },
		"another mechanism": func(t *testing.T, a *acceptor) []byte {
			r := a.reply(t, nil, nil)
			i := strings.Index(string(r), "\x86\xf7\x12\x01\x02\x02")
			r[i+5]++
			return r
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, a := begin(t, nil)
			require.Error(t, c.Accept(reply(t, a)))
			_, err := c.Wrap([]byte("x"), true)
			require.ErrorContains(t, err, "not established")
		})
	}
	c, _ := begin(t, nil)
	refused := messages.NewKRBError(serviceName("ldap/dc1.example.test"), "EXAMPLE.TEST", 37, "")
	body, err := refused.Marshal()
	require.NoError(t, err)
	var e *Error
	require.ErrorAs(t, c.Accept(framed(t, []byte{3, 0}, body)), &e)
	require.Equal(t, Error{Code: 37}, *e)
	require.Error(t, c.Accept(framed(t, []byte{3, 0}, body[:10])))
}

// TestBinding: the first token has the digest of the TLS connection and the flags of the context.
func TestBinding(t *testing.T) {
	t.Parallel()
	// printf '\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\x0b\\0\\0\\0hello world' | md5sum
	require.Equal(t, "7eec87d7a7d64a269a1ace5164348c23", hex.EncodeToString(bindingDigest([]byte("hello world"))))
	for _, binding := range [][]byte{nil, {}, []byte("tls-server-end-point:" + strings.Repeat("x", 48))} {
		_, a := begin(t, binding)
		sum := a.seen.Cksum.Checksum
		require.Len(t, sum, 24)
		require.Equal(t, []byte{16, 0, 0, 0}, sum[:4])
		require.EqualValues(t, 2|4|8|16|32, binary.LittleEndian.Uint32(sum[20:]))
		want := make([]byte, 16)
		if binding != nil {
			struct5 := append(binary.LittleEndian.AppendUint32(make([]byte, 16), uint32(len(binding))), binding...)
			digest := md5.Sum(struct5) //nolint:gosec // see the import
			want = digest[:]
		}
		require.Equal(t, want, sum[4:20])
	}
}
