package directory

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// marked is used in the place of the protection: it puts a mark before the data. Kerberos' own is tested where it is.
type marked struct{}

func (marked) Wrap(data []byte, seal bool) ([]byte, error) {
	if !seal {
		return nil, errors.New("not sealed")
	}
	return append([]byte("sealed:"), data...), nil
}

func (marked) Unwrap(token []byte, sealed bool) ([]byte, error) {
	data, ok := bytes.CutPrefix(token, []byte("sealed:"))
	if !ok || !sealed {
		return nil, errors.New("a token is not protected as agreed")
	}
	return data, nil
}

func frame(token string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(token))), token...)
}

// message is an LDAP message with a long length, as Windows writes it.
func message(content string) []byte {
	data := append([]byte{4, byte(len(content))}, content...)
	return append([]byte{0x30, 0x84, 0, 0, 0, byte(len(data))}, data...)
}

// sent returns a wire to whose other side the chunks are written one by one.
func sent(t *testing.T, chunks [][]byte) *wire {
	t.Helper()
	ours, theirs := net.Pipe()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, chunk := range chunks {
			if _, err := theirs.Write(chunk); err != nil {
				return // the test has ended
			}
		}
		assert.NoError(t, theirs.Close())
	}()
	t.Cleanup(func() { assert.NoError(t, ours.Close()); <-done })
	return &wire{Conn: ours, guard: newGuard()}
}

// TestRead: the last message of the negotiation and the frames behind it arrive in pieces of any size, or all at once.
func TestRead(t *testing.T) {
	t.Parallel()
	last, first, long := message("bind"), message("first"), element(0x30, element(4, bytes.Repeat([]byte("x"), 5000)))
	stream := slices.Concat(last, frame("sealed:"+string(first)), frame("sealed:"), frame("sealed:"+string(long[:99])), frame("sealed:"+string(long[99:])))
	want := slices.Concat(last, first, long)
	for _, size := range []int{1, 2, 3, 5, 7, len(last), len(last) + 4, 64, 4096, len(stream)} {
		for _, buffer := range []int{1, 16, 8192} {
			w := sent(t, slices.Collect(slices.Chunk(stream, size)))
			w.reads.Store(marked{})
			var got []byte
			for p := make([]byte, buffer); ; {
				n, err := w.Read(p)
				got = append(got, p[:n]...)
				if errors.Is(err, io.EOF) {
					break
				}
				require.NoError(t, err)
			}
			require.Equal(t, string(want), string(got), "pieces of %d, buffer of %d", size, buffer)
		}
	}
	w := sent(t, [][]byte{last[:3], slices.Concat(last[3:], last)})
	got, err := io.ReadAll(w)
	require.NoError(t, err)
	require.Equal(t, string(last)+string(last), string(got), "not agreed")
}

// TestReadRefused: nothing is delivered that is not sealed, or has no bounds.
func TestReadRefused(t *testing.T) {
	t.Parallel()
	last := message("bind")
	for name, tt := range map[string]struct {
		stream []byte
		err    string
	}{
		"a message that is not sealed":  {slices.Concat(last, message("forged")), "too long"},
		"a frame that is not sealed":    {slices.Concat(last, frame(string(message("forged")))), "not protected as agreed"},
		"an empty frame":                {slices.Concat(last, frame("")), "not protected as agreed"},
		"a frame that is too long":      {slices.Concat(last, []byte{1, 0, 0, 0}), "too long"},
		"the longest frame":             {slices.Concat(last, []byte{0xff, 0xff, 0xff, 0xff}), "too long"},
		"a sealed text":                 {slices.Concat(last, frame("sealed:"+"HTTP/1.1 400")), "no LDAP message"},
		"sealed values of 17 KiB":       {slices.Concat(last, frame("sealed:"+string(entry(make([]byte, 17<<10))))), "too long"},
		"a frame that ends":             {slices.Concat(last, frame("sealed:" + string(message("first")))[:9]), "EOF"},
		"an endless reply":              {append([]byte{0x30, 0x84, 0, 0xff, 0xff, 0xff}, make([]byte, unauthenticated().bytes+1)...), "too long"},
		"a reply of an unbounded array": {append([]byte{0x30, 0x84, 0xff, 0xff, 0xff, 0xff}, make([]byte, unauthenticated().bytes+1)...), "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sent(t, [][]byte{tt.stream})
			w.reads.Store(marked{})
			got, p := []byte{}, make([]byte, 4096)
			for {
				n, err := w.Read(p)
				got = append(got, p[:n]...)
				if err != nil {
					require.ErrorContains(t, err, tt.err)
					break
				}
			}
			require.True(t, bytes.HasPrefix(last, got), "%q", got)
		})
	}
}

// TestLongestFrame: a frame as long as agreed is read.
func TestLongestFrame(t *testing.T) {
	t.Parallel()
	data := element(0x30, element(4, bytes.Repeat([]byte("x"), maxFrame-len("sealed:")-12)))
	w := sent(t, slices.Collect(slices.Chunk(frame("sealed:"+string(data)), 1<<20)))
	w.reads.Store(marked{})
	w.ended = true
	w.guard.trust()
	w.guard.begin()
	got := make([]byte, len(data))
	_, err := io.ReadFull(w, got)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, got))
}

// TestWrite: requests are sealed from the end of the negotiation on, not before.
func TestWrite(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	w := &wire{Conn: ours, guard: newGuard()}
	write := func(text string) []byte {
		done := make(chan struct{})
		var got [64]byte
		var n int
		go func() {
			defer close(done)
			var err error
			n, err = theirs.Read(got[:])
			assert.NoError(t, err)
		}()
		m, err := w.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), m)
		<-done
		return got[:n]
	}
	require.Equal(t, "bind", string(write("bind")))
	w.reads.Store(marked{})
	require.Equal(t, "the last bind", string(write("the last bind")))
	w.writes.Store(marked{})
	require.Equal(t, frame("sealed:search"), write("search"))
	require.NoError(t, w.Close())
	require.NoError(t, theirs.Close())
	_, err := w.Write([]byte("closed"))
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

func TestQuoted(t *testing.T) {
	t.Parallel()
	for password, want := range map[string]string{
		"":     "\"\x00\"\x00",
		"aé€":  "\"\x00a\x00\xe9\x00\xac\x20\"\x00",
		"😀":    "\"\x00\x3d\xd8\x00\xde\"\x00",
		`a"b\`: "\"\x00a\x00\"\x00b\x00\\\x00\"\x00",
	} {
		require.Equal(t, want, quoted(password))
	}
}
