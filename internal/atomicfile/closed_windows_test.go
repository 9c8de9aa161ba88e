package atomicfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestClosed: a file with a secret is not as readable as the directory that it is in, also over what a killed writer left.
func TestClosed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, step := range []struct {
		mode  os.FileMode
		stale bool
		want  bool
	}{{0o644, false, false}, {0o600, false, true}, {0o600, true, true}, {0o640, false, true}, {0o644, true, false}} {
		left := filepath.Join(dir, temporaryName("f", temporarySuffix))
		if step.stale {
			if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := WriteFile(path, []byte("content"), Options{Mode: step.mode}); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		closed, err := Closed(file)
		if err := errors.Join(err, file.Close()); err != nil || closed != step.want {
			t.Errorf("mode %o: closed is %v (%v)", step.mode, closed, err)
		}
		if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("mode %o: a temporary file is left (%v)", step.mode, err)
		}
	}
}
