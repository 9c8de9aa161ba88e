package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	t.Parallel()
	var line bytes.Buffer
	c := NewConn(&line)
	long := strings.Repeat("x", 2*Piece+1)
	if err := c.Send(Frame{Kind: Hello}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Stream(Stdout, 7).Write([]byte(long)); n != len(long) || err != nil {
		t.Fatalf("wrote %d, %v", n, err)
	}
	if err := c.Send(Frame{Kind: Exit, Call: 7, Payload: []byte("3")}); err != nil {
		t.Fatal(err)
	}
	want := []Frame{{Hello, 0, nil}, {Stdout, 7, []byte(long[:Piece])}, {Stdout, 7, []byte(long[:Piece])}, {Stdout, 7, []byte("x")}, {Exit, 7, []byte("3")}}
	for i, w := range want {
		got, err := c.Receive()
		if err != nil || got.Kind != w.Kind || got.Call != w.Call || !bytes.Equal(got.Payload, w.Payload) {
			t.Errorf("frame %d: kind %d of %d with %d bytes, %v", i, got.Kind, got.Call, len(got.Payload), err)
		}
	}
	if _, err := c.Receive(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{
		"a header cut off":  "\x01\x00\x00",
		"a payload cut off": "\x01\x00\x00\x00\x01\x00\x00\x00\x05abc",
		"something else":    "Welcome to Debian GNU/Linux",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if f, err := NewConn(bytes.NewBufferString(sent)).Receive(); err == nil || err == io.EOF { //nolint:errorlint // wrapped it is another error
				t.Errorf("received %+v, %v", f, err)
			}
		})
	}
	if err := NewConn(&bytes.Buffer{}).Send(Frame{Payload: make([]byte, Longest+1)}); err == nil {
		t.Error("a message was sent that nobody would receive")
	}
}
