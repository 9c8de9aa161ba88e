package process

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

// TestWatchWrites: a file that is written under its own name is reported, new or not, and one that is renamed to it is not.
func TestWatchWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	casetest.Put(t, dir, map[string]string{"d/old": "1", "d/cut": "1", "d/renamed": "1", "d/kept": "1", "e/elsewhere": "1"})
	w, err := WatchWrites(dir, []string{"d"})
	if err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	err = errors.Join(
		os.WriteFile(in("d/old"), []byte("2"), 0o600), os.WriteFile(in("d/new"), []byte("2"), 0o600), os.Truncate(in("d/cut"), 0),
		os.WriteFile(in("d/temporary"), []byte("2"), 0o600), os.Rename(in("d/temporary"), in("d/renamed")),
		os.Chmod(in("d/kept"), 0o600), os.WriteFile(in("e/elsewhere"), []byte("2"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Written()
	if want := []string{"d/cut", "d/new", "d/old", "d/temporary"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
