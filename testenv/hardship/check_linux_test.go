package hardship

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
)

// The tests of this file prove that each check can fail, and that each hardship makes writing fail.

func TestHardshipsPreventWriting(t *testing.T) {
	t.Parallel()
	for kind, h := range hardships() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			isolate(t, 0)
			disk := filepath.Join(newBench(t).dir, "disk")
			h.mount(t, disk)
			dir, file := filepath.Join(disk, "d"), filepath.Join(disk, "d", "f")
			put(t, file, "old\n")
			replace := func() error { // as a run does
				if err := os.WriteFile(file+".new", make([]byte, 8192), 0o600); err != nil {
					return err
				}
				return os.Rename(file+".new", file)
			}
			repair := h.strike(t, disk, dir, file)
			err := replace()
			if !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) && !errors.Is(err, unix.EROFS) && !errors.Is(err, unix.EPERM) {
				t.Errorf("the file was replaced: %v", err)
			}
			repair()
			if err := replace(); err != nil {
				t.Errorf("once it is over: %v", err)
			}
		})
	}
}

func TestFreeBlocksAreCounted(t *testing.T) {
	t.Parallel()
	isolate(t, 0)
	for name, mount := range map[string]func(*testing.T, string){"tmpfs": mountTmpfs, "ext4": mountExt4} {
		for n := range 3 {
			dir := newBench(t).dir
			var blocks, inodes unix.Statfs_t
			for disk, st := range map[string]*unix.Statfs_t{"blocks": &blocks, "inodes": &inodes} {
				at := filepath.Join(dir, disk)
				mount(t, at)
				if disk == "blocks" {
					fill(t, at, int64(n))
				} else {
					takeInodes(t, at, n)
				}
				if err := unix.Statfs(at, st); err != nil {
					t.Fatal(err)
				}
			}
			if blocks.Bavail != uint64(n) || inodes.Ffree != uint64(n) {
				t.Errorf("%s: %d blocks and %d inodes are free, want %d", name, blocks.Bavail, inodes.Ffree, n)
			}
		}
	}
}

func TestLoopDevicesAreFound(t *testing.T) {
	t.Parallel()
	isolate(t, 0)
	mountExt4(t, filepath.Join(newBench(t).dir, "disk"))
	if used, err := loopDevices(filepath.Base(built)); err != nil || len(used) == 0 {
		t.Errorf("%q (%v)", used, err)
	}
	if used, err := loopDevices("of another user"); err != nil || len(used) > 0 {
		t.Errorf("%q (%v)", used, err)
	}
}

func TestDamage(t *testing.T) {
	t.Parallel()
	g := golden{files: map[string][]string{"etc/f": {"old contents\n", "new contents\n"}}}
	for name, tt := range map[string]struct {
		text    string
		edition int
		wrong   bool
	}{
		"old":                 {"old contents\n", 2, false},
		"new":                 {"new contents\n", 2, false},
		"half of the new one": {"new con", 2, true},
		"empty":               {"", 2, true},
		"gone":                {"-", 2, true},
		"not made":            {"-", 1, false},
		"made":                {"old contents\n", 1, false},
		"half made":           {"old", 1, true},
	} {
		root := t.TempDir()
		if tt.text != "-" {
			put(t, filepath.Join(root, "etc/f"), tt.text)
		}
		if wrong, err := g.damage(root, tt.edition); err != nil || (len(wrong) > 0) != tt.wrong {
			t.Errorf("%s: %q (%v)", name, wrong, err)
		}
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "run/report.json"), "{}\n")
	put(t, filepath.Join(dir, "state/plugins/machineadm-motd-plugin-file/f"), "")
	if found, err := leftovers(dir, filepath.Join(dir, "none")); err != nil || len(found) > 0 {
		t.Fatalf("%q (%v)", found, err)
	}
	for _, left := range []string{
		"etc/.f.machineadm-tmp", "etc/.l.machineadm-tmplink", "run/.sockets-12/s", "tmp/machineadm-12/s", "tmp/machineadm-run-12/s",
		"etc/machineadm/.pending", "state/half.json",
	} {
		put(t, filepath.Join(dir, left), "{")
	}
	if found, err := leftovers(dir); err != nil || len(found) != 7 {
		t.Errorf("%q (%v)", found, err)
	}
}

func TestReportsThatDoNotAgree(t *testing.T) {
	t.Parallel()
	failed := func(r *report.Report) {
		r.ExitCode, r.Outcome, r.Errors = report.ExitState, report.RunFailed, []report.Error{{Message: "no", Hint: "do this"}}
	}
	for name, tt := range map[string]struct {
		code   int
		change func(*report.Report)
		wrong  bool
	}{
		"success":               {report.ExitOK, func(*report.Report) {}, false},
		"failure":               {report.ExitState, failed, false},
		"failure, not reported": {report.ExitState, func(*report.Report) {}, true},
		"another failure":       {report.ExitPrecondition, failed, true},
		"still running":         {report.ExitState, func(r *report.Report) { failed(r); r.Outcome = report.RunRunning }, true},
		"no end":                {report.ExitState, func(r *report.Report) { failed(r); r.FinishedAt = time.Time{} }, true},
		"no reason":             {report.ExitState, func(r *report.Report) { failed(r); r.Errors = nil }, true},
		"no advice":             {report.ExitState, func(r *report.Report) { failed(r); r.Errors[0].Hint = "" }, true},
		"success that is none":  {report.ExitState, func(r *report.Report) { failed(r); r.Outcome = report.RunSucceeded }, true},
	} {
		r := report.Report{Outcome: report.RunSucceeded, FinishedAt: time.Now()}
		tt.change(&r)
		if err := agrees(r, tt.code); (err != nil) != tt.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryPartOfAReportIsRefused(t *testing.T) {
	t.Parallel()
	data, err := json.MarshalIndent(report.Report{Kind: report.Kind, RunID: "1", Outcome: report.RunRunning, Documents: []report.Document{}}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	data = append(data, '\n')
	for n := range data {
		if _, err := parseReport(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted as a complete report", n, len(data))
		}
	}
	if _, err := parseReport(data); err != nil {
		t.Error(err)
	}
}

// TestHarmIsReported also where no trace is left.
func TestHarmIsReported(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(victim string) error{
		"nothing": func(string) error { return nil },
		"a temporary file that came and went": func(victim string) error {
			return errors.Join(os.WriteFile(filepath.Join(victim, "t"), nil, 0o600), os.Remove(filepath.Join(victim, "t")))
		},
		"another content": func(victim string) error {
			return os.WriteFile(filepath.Join(victim, "f"), []byte(strings.ToUpper("the victim's\n")), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArena(t, "etc/app", "f")
			if err := harm(a.victim); err != nil {
				t.Fatal(err)
			}
			if _, err := a.end(t); (err == nil) != (name == "nothing") {
				t.Errorf("harm: %v", err)
			}
		})
	}
}
