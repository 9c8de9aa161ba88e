package files

import (
	"io/fs"
	"testing"
)

// TestModes: on Windows (no UID) a mode only shows whether others have access; elsewhere it is compared.
func TestModes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uid        int
		have, want fs.FileMode
		same       bool
	}{
		{0, 0o644, 0o644, true},
		{0, 0o600, 0o644, false},
		{0, 0o644, 0o600, false},
		{-1, 0o666, 0o644, true},
		{-1, 0o666, 0o600, false},
		{-1, 0o666, 0o640, false},
		{-1, 0o600, 0o600, true},
		{-1, 0o600, 0o640, true},
		{-1, 0o600, 0o644, true}, // others need not have access
		{-1, 0, 0, true},         // not a file
	} {
		have := State{Exists: true, Mode: c.have, UID: c.uid, GID: c.uid}
		if got := have.Matches(State{Exists: true, Mode: c.want, UID: -1, GID: -1}); got != c.same {
			t.Errorf("uid %d, mode %o for %o: %v", c.uid, c.have, c.want, got)
		}
	}
}
