package terminal

import (
	"testing"
)

// TestEmulator holds the measure against what is known of terminals.
func TestEmulator(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sent, want string
		history    int
	}{
		"text":               {"one\r\ntwo", "one\ntwo", 0},
		"scrolls":            {"1\r\n2\r\n3\r\n4\r\n5", "1\n2\n3\n4\n5", 2},
		"overwrites":         {"abcdef\rXY", "XYcdef", 0},
		"up and erase":       {"one\r\ntwo\r\n\x1b[1A\x1b[Knew", "one\nnew", 0},
		"erases below":       {"one\r\ntwo\r\nthree\r\x1b[1A\x1b[J", "one", 0},
		"up stops":           {"one\r\n\x1b[9Atwo", "two", 0},
		"wraps":              {"1234567890ab", "1234567890ab", 0},
		"does not wrap yet":  {"1234567890\r\nab", "1234567890\nab", 0},
		"wide letters":       {"漢字漢字漢字", "漢字漢字漢字", 0},
		"an accent":          {"e\u0301x", "e\u0301x", 0},
		"colours":            {"\x1b[1;31mred\x1b[0m", "red", 0},
		"all that is erased": {"one\r\ntwo\r\n\x1b[2A\x1b[J", "one\ntwo", 3},
	} {
		e := newEmulator(10, 3)
		for i := range len(tt.sent) {
			e.Write([]byte{tt.sent[i]}) // in the smallest pieces
		}
		if e.text() != tt.want || len(e.history) != tt.history || len(e.unknown) > 0 {
			t.Errorf("%s: %q with %d rows of history, want %q with %d; unknown: %q", name, e.text(), len(e.history), tt.want, tt.history, e.unknown)
		}
	}
	e := newEmulator(10, 3)
	e.Write([]byte("\x1b[?25l\x07"))
	if len(e.unknown) != 2 {
		t.Errorf("unknown: %q", e.unknown)
	}
}

func TestEmulatorResizes(t *testing.T) {
	t.Parallel()
	e := newEmulator(10, 4)
	e.Write([]byte("1234567890\r\nab\r\n"))
	e.resize(4, 4)
	if e.text() != "1234567890\nab" || len(e.wrapped()) != 2 || len(e.history) != 1 || e.y != 3 {
		t.Errorf("%q, wrapped %q, history %d, cursor in row %d", e.text(), e.wrapped(), len(e.history), e.y)
	}
	e.Write([]byte("\x1b[1AX"))
	if e.text() != "1234567890\nXb" {
		t.Errorf("%q", e.text())
	}
	e.resize(20, 4)
	if e.text() != "1234567890\nXb" || len(e.wrapped()) != 0 {
		t.Errorf("%q, wrapped %q", e.text(), e.wrapped())
	}
}
