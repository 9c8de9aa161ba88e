package state

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
)

// TestOnlyChangedDetailsAreWritten: a run writes many reports, and seldom new details.
func TestOnlyChangedDetailsAreWritten(t *testing.T) {
	t.Parallel()
	r := Reports{RunDir: filepath.Join(t.TempDir(), "run")}
	path := filepath.Join(r.RunDir, DetailsFile)
	write := func(id string, details map[string]string) os.FileInfo {
		t.Helper()
		if err := r.Write(report.Report{RunID: id}, details); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		return info
	}
	first := write("a", map[string]string{"document-0": "first"})
	if same := write("a", map[string]string{"document-0": "first"}); !os.SameFile(first, same) {
		t.Error("the same details were written again")
	}
	words := write("a", map[string]string{"document-0": "words"})
	if os.SameFile(first, words) {
		t.Error("new details were not written")
	}
	if another := write("b", map[string]string{"document-0": "words"}); os.SameFile(words, another) {
		t.Error("another run's details were left as they were")
	}
	if err := os.Chmod(path, 0o644); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	r = Reports{RunDir: r.RunDir} // of the next run
	if info := write("b", map[string]string{"document-0": "words"}); info.Mode().Perm() != 0o600 {
		t.Errorf("details that everyone could read have the mode %v", info.Mode())
	}
	for range 2 { // also where there are none to remove
		r = Reports{RunDir: r.RunDir}
		if err := r.Write(report.Report{RunID: "c"}, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("another run's details are left (%v)", err)
		}
	}
}
