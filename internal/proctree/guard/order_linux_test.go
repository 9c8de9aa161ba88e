package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	for _, want := range []Order{
		{ID: 7},
		{ID: 1, Path: "/p", Arguments: []string{"/p"}},
		{
			ID: 1 << 30, Path: "/p", Dir: "/d", Opened: true, Files: []bool{true, true, true, false, true},
			Arguments: []string{"/p", "", "-1", "--", "a b\nc"}, Environment: []string{"A=", "B=x y"},
		},
	} {
		message, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if n := number(message); n != len(message)-lengthBytes {
			t.Errorf("the length says %d, the message has %d", n, len(message)-lengthBytes)
		}
		got, err := Decode(message[lengthBytes:])
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%+v %v, want %+v", got, err, want)
		}
	}
	for _, o := range []Order{{Path: "/a\x00b"}, {Arguments: []string{"\x00"}}, {Environment: []string{"A=\x00"}}} {
		if _, err := o.Encode(); err == nil {
			t.Errorf("%+v goes with a NUL", o)
		}
	}
	if _, err := (Order{Environment: []string{strings.Repeat("x", maxOrder)}}).Encode(); err == nil {
		t.Error("there is no limit")
	}
	for _, message := range []string{"", "1\x00/p\x00\x00\x00\x00", "x\x00\x00\x00\x00\x000\x00", "1\x00\x00\x00\x00\x001\x00", "1\x00\x00\x00\x00\x00-1\x00", "1\x00\x00\x00\x00\x000"} {
		if got, err := Decode([]byte(message)); err == nil {
			t.Errorf("%q: %+v", message, got)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte("1\x00/p\x00\x00111\x00\x001\x00/p\x00A=b\x00"))
	f.Fuzz(func(t *testing.T, message []byte) {
		o, err := Decode(message)
		if err != nil {
			return
		}
		again, err := o.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if same, err := Decode(again[lengthBytes:]); err != nil || !reflect.DeepEqual(same, o) {
			t.Fatalf("%+v %v, want %+v", same, err, o)
		}
	})
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	for _, want := range []Answer{{Event: Started, ID: 1, Value: 1 << 22}, {Event: Ended, ID: 1 << 30, Value: 137}} {
		var message [AnswerBytes]byte
		copy(message[:], want.Encode())
		if got := DecodeAnswer(message); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// TestReceive: orders that arrive in one piece, or in many, come out one by one, each with its descriptors.
func TestReceive(t *testing.T) {
	t.Parallel()
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(t.TempDir(), "content")
	if err := os.WriteFile(content, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(content)
	if err != nil {
		t.Fatal(err)
	}
	orders := []Order{
		{ID: 1},
		{ID: 2, Path: "/p", Files: []bool{true}, Opened: true},
		{ID: 3},
		{ID: 4, Path: "/p", Files: []bool{true, false, true}, Environment: []string{strings.Repeat("x", 1<<20)}},
	}
	sent := make(chan error, 1)
	go func() {
		defer close(sent)
		for _, o := range orders {
			message, err := o.Encode()
			if err != nil {
				sent <- err
				return
			}
			rights := unix.UnixRights([]int{int(file.Fd()), int(file.Fd()), int(file.Fd())}[:o.descriptors()]...)
			for len(message) > 0 {
				piece := message[:min(3, len(message))] // not even the length in one
				if o.ID == 4 && rights == nil {
					piece = message
				}
				n, err := unix.SendmsgN(ends[0], piece, rights, nil, 0)
				if err != nil {
					sent <- err
					return
				}
				message, rights = message[n:], nil
			}
		}
		sent <- unix.Close(ends[0])
	}()
	for _, want := range orders {
		got, descriptors, err := receive(ends[1])
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) || len(descriptors) != want.descriptors() {
			t.Fatalf("%d with %d (%v), want %d with %d", got.ID, descriptors, err, want.ID, want.descriptors())
		}
		for _, d := range descriptors {
			b := make([]byte, 7)
			if _, err := unix.Pread(d, b, 0); err != nil || !bytes.Equal(b, []byte("content")) {
				t.Errorf("order %d: a descriptor is not the file: %q %v", want.ID, b, err)
			}
			if flags, err := unix.FcntlInt(uintptr(d), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
				t.Errorf("order %d: a descriptor stays open at an exec (%v)", want.ID, err)
			}
			if err := unix.Close(d); err != nil {
				t.Error(err)
			}
		}
	}
	if err := <-sent; err != nil {
		t.Fatal(err)
	}
	if _, _, err := receive(ends[1]); !errors.Is(err, errHostGone) {
		t.Errorf("at the end: %v", err)
	}
	if err := errors.Join(unix.Close(ends[1]), file.Close()); err != nil {
		t.Fatal(err)
	}
}
