package hardship

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
)

// series is a disk on which there is a little more room in each run, from nothing to enough.
type series struct {
	mount func(t *testing.T, at string)
	leave func(t *testing.T, at string, n int) (filler string)
	move  func(b *bench, disk string)
	warm  bool
	// points is how many different files, at least, a run could not write.
	points int
}

func allSeries() map[string]series {
	blocks := func(t *testing.T, at string, n int) string { t.Helper(); return fill(t, at, int64(n)) }
	all := func(b *bench, disk string) {
		for _, p := range places() {
			p.move(b, disk)
		}
	}
	return map[string]series{ // the durations in a report can make it a block larger, which then fails before another file
		"blocks of tmpfs, first run":   {mountTmpfs, blocks, all, false, 4},
		"blocks of tmpfs, later run":   {mountTmpfs, blocks, all, true, 2},
		"blocks of tmpfs, target only": {mountTmpfs, blocks, places()["target"].move, true, 2},
		"blocks of tmpfs, state only":  {mountTmpfs, blocks, places()["state"].move, false, 2},
		"blocks of tmpfs, run only":    {mountTmpfs, blocks, places()["run"].move, false, 1},
		"blocks of ext4, first run":    {mountExt4, blocks, all, false, 4},
		"blocks of ext4, later run":    {mountExt4, blocks, all, true, 3},
		"inodes of tmpfs, first run":   {mountTmpfs, takeInodes, all, false, 4},
		"inodes of ext4, later run":    {mountExt4, takeInodes, all, true, 1},
	}
}

// TestDiskFullAtEveryWrite runs with room for nothing, for one block, for two, until it is enough, so that each write of
// a run is the first to fail once.
func TestDiskFullAtEveryWrite(t *testing.T) {
	want := undisturbed(t)
	for name, s := range allSeries() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			isolate(t, 0)
			failed, codes := map[string]bool{}, map[int]int{}
			const enough = 200
			for n := 0; codes[report.ExitOK] == 0; n++ {
				codes[s.step(t, n, want, failed)]++
				if n == enough || t.Failed() {
					t.Fatalf("with room for %d", n)
				}
			}
			t.Logf("exit codes %v; could not be written: %q", codes, slices.Sorted(maps.Keys(failed)))
			if len(failed) < s.points {
				t.Errorf("want %d different files that could not be written", s.points)
			}
		})
	}
}

// step runs once with this room and checks what is left. Where another file could not be written than before, it
// runs again with enough room.
func (s series) step(t *testing.T, n int, want golden, failed map[string]bool) (code int) {
	t.Helper()
	b := newBench(t)
	disk := filepath.Join(b.dir, "disk")
	s.mount(t, disk)
	s.move(b, disk)
	edition := b.begin(t, s.warm, want)
	before := b.lastRun()
	filler := s.leave(t, disk, n)
	got := b.apply(t, edition)
	b.intact(t, want, edition)
	switch {
	case got.code == report.ExitOK:
		b.checkReport(t, before, got, true)
		b.prepared(t, want, edition)
		return got.code
	case got.code == report.ExitPrecondition, got.code == report.ExitState,
		// No socket could be made, by the host its directory or by the plugin itself, and so no plugin be started.
		got.code == report.ExitFailed && strings.Contains(got.stderr, "the plugin could not be started: mkdir "),
		got.code == report.ExitFailed && regexp.MustCompile(`open \S+/plugin-dir\d+/\S+: no space left`).MatchString(got.stderr):
		b.checkReport(t, before, got, b.run != filepath.Join(disk, "run"))
	default:
		t.Errorf("another exit code: %s", got)
	}
	at := regexp.MustCompile(`(?:write|mkdir|open) (\S+): .*no space left on device`).FindStringSubmatch(got.stderr)
	if at == nil || !strings.HasPrefix(at[1], disk+"/") || !strings.Contains(got.stderr, "hint: ") {
		t.Fatalf("the error lacks the file or the hint:\n%s", got)
	}
	file := regexp.MustCompile(`[0-9a-fTZ]{8,}`).ReplaceAllString(strings.TrimPrefix(at[1], disk), "N")
	if !failed[file] {
		failed[file] = true
		removeAll(t, filler)
		b.succeeds(t, want, edition)
	}
	if t.Failed() {
		t.Logf("with room for %d: %s", n, got)
	}
	return got.code
}
