package hardship

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// place is a directory of a run that is put on the hostile disk.
type place struct {
	move func(b *bench, disk string)
	// dir and file are hit where a disk is not hit as a whole; an empty file means that there is none that a run
	// replaces.
	dir  func(b *bench, warm bool) string
	file func(b *bench) string
	exit int
	// record is what a run writes before it writes to dir, if that is not in dir: a hit disk ends the run there.
	record func(b *bench) string
}

func places() map[string]place {
	none := func(*bench) string { return "" }
	return map[string]place{
		"target": {
			move:   func(b *bench, disk string) { b.root = filepath.Join(disk, "root") },
			dir:    func(b *bench, _ bool) string { return filepath.Join(b.root, "etc/sysctl.d") },
			file:   func(b *bench) string { return filepath.Join(b.root, limitsFile) },
			exit:   report.ExitPrecondition,
			record: func(b *bench) string { return filepath.Join(b.root, "etc/machineadm") },
		},
		"state": {
			move: func(b *bench, disk string) { b.state = filepath.Join(disk, "state") },
			dir: func(b *bench, warm bool) string {
				if warm { // nothing else of it is written to
					return filepath.Join(b.state, "reports")
				}
				return b.state
			},
			file: none, exit: report.ExitState,
		},
		"run": {
			move: func(b *bench, disk string) { b.run = filepath.Join(disk, "run") },
			dir:  func(b *bench, _ bool) string { return b.run },
			file: func(b *bench) string { return filepath.Join(b.run, "report.json") },
			exit: report.ExitState,
		},
		// Temporary files can be in other directories.
		"TMPDIR": {
			move: func(b *bench, disk string) { b.tmp = filepath.Join(disk, "tmp") },
			dir:  func(b *bench, _ bool) string { return b.tmp },
			file: none, exit: report.ExitOK,
		},
	}
}

// golden is an image after undisturbed runs.
type golden struct {
	files map[string][]string // contents of a file: edition 1, edition 2
	trees []string            // of the image, likewise
	first *bench              // as edition 1 left it
}

func undisturbed(t *testing.T) golden {
	t.Helper()
	b := newBench(t)
	b.makeDirectories(t)
	g := golden{files: map[string][]string{}, first: newBenchIn(t, built)} // seen also where another disk is on the benches
	for edition := 1; edition <= 2; edition++ {
		if got := b.apply(t, edition); got.code != report.ExitOK {
			t.Fatal(got)
		}
		if edition == 1 {
			g.first.copy(t, b)
		}
		for _, name := range []string{motdFile, limitsFile, manyFile} {
			data, err := os.ReadFile(filepath.Join(b.root, name))
			if err != nil {
				t.Fatal(err)
			}
			g.files[name] = append(g.files[name], string(data))
		}
		g.trees = append(g.trees, machinetest.Tree(t, b.root))
	}
	return g
}

// copy makes a bench equal to another one.
func (b *bench) copy(t *testing.T, from *bench) {
	t.Helper()
	for to, from := range map[string]string{b.root: from.root, b.state: from.state, b.run: from.run, b.tmp: from.tmp} {
		command(t, "cp", "--archive", "--no-target-directory", from, to)
	}
}

// TestEveryPlace hits each directory of a run with each hardship: on a machine that was prepared before (warm), and at
// the first run (cold).
func TestEveryPlace(t *testing.T) {
	want := undisturbed(t)
	for name, p := range places() {
		for kind, h := range hardships() {
			for _, warm := range []bool{true, false} {
				b := &bench{}
				p.move(b, "/")
				if h.file && (!warm || p.file(b) == "") {
					continue
				}
				if name == "TMPDIR" && kind == "append-only directory" {
					continue // files that can be made in it and not removed stay
				}
				t.Run(strings.Join([]string{name, kind, map[bool]string{true: "warm", false: "cold"}[warm]}, "/"), func(t *testing.T) {
					t.Parallel()
					hit(t, p, h, warm, want)
				})
			}
		}
	}
}

func hit(t *testing.T, p place, h hardship, warm bool, want golden) {
	t.Helper()
	isolate(t, 0)
	b := newBench(t)
	disk := filepath.Join(b.dir, "disk")
	h.mount(t, disk)
	p.move(b, disk)
	edition := b.begin(t, warm, want)
	before, dir := b.lastRun(), p.dir(b, warm)
	repair := h.strike(t, disk, dir, p.file(b))
	free := freeBlocks(disk)
	exits := p.exit
	if h.disk && p.record != nil { // the state of an image is in the image
		exits, dir = report.ExitState, p.record(b)
	}
	got := b.apply(t, edition)
	if got.code != exits {
		t.Errorf("want exit %d; %s\n%s", exits, free, got)
	}
	if got.code != report.ExitOK && (!strings.Contains(got.stderr, dir) || !strings.Contains(got.stderr, "hint: ")) {
		t.Errorf("the error lacks the path or the hint:\n%s", got)
	}
	if exits == report.ExitPrecondition && !strings.Contains(got.stderr, h.hint) {
		t.Errorf("the error does not advise to %s:\n%s", h.hint, got)
	}
	b.intact(t, want, edition)
	b.checkReport(t, before, got, !strings.HasPrefix(b.run, disk))
	repair()
	b.succeeds(t, want, edition)
}

// begin copies the result of an earlier run, or an empty image, to a bench, and returns the edition to apply.
func (b *bench) begin(t *testing.T, warm bool, want golden) (edition int) {
	t.Helper()
	if !warm {
		b.makeDirectories(t)
		return 1
	}
	b.copy(t, want.first)
	return 2
}

// lastRun is the ID of the run that left the report, if there is one.
func (b *bench) lastRun() string {
	r, err := b.report()
	if err != nil {
		return ""
	}
	return r.RunID
}

// intact fails the test for a file that is neither the old nor the new one, and for leftovers.
func (b *bench) intact(t *testing.T, want golden, edition int) {
	t.Helper()
	wrong, err := want.damage(b.root, edition)
	if err != nil {
		t.Error(err)
	}
	left, err := leftovers(b.root, b.state, b.run, b.tmp)
	if err != nil {
		t.Error(err)
	}
	for _, w := range append(wrong, left...) {
		t.Error(w)
	}
}

// damage returns the files of an image that are neither the old ones nor this edition's.
func (g golden) damage(root string, edition int) ([]string, error) {
	var wrong []string
	for name, editions := range g.files {
		data, err := os.ReadFile(filepath.Join(root, name))
		switch {
		case errors.Is(err, fs.ErrNotExist) && edition == 1:
		case errors.Is(err, fs.ErrNotExist):
			wrong = append(wrong, name+" is gone")
		case err != nil:
			return nil, err
		case string(data) == editions[edition-1], edition == 2 && string(data) == editions[0]:
		default:
			wrong = append(wrong, fmt.Sprintf("%s is neither the old one nor the new one: %d bytes, %.80q", name, len(data), data))
		}
	}
	return wrong, nil
}

// checkReport compares how a run ended with the report that it left. before is the earlier run of the earlier report. Where
// a report can be written, this run has written one to the end; else the one of before is where it was or aside, or there
// is from the moment at which the disk was full.
func (b *bench) checkReport(t *testing.T, before string, got result, writable bool) {
	t.Helper()
	r, err := b.report()
	unkept := got.code == report.ExitState || strings.Contains(got.stderr, "the state cannot be kept")
	switch {
	case errors.Is(err, fs.ErrNotExist) && before == "" && unkept: // no directory is writable: nothing was begun
		return
	case errors.Is(err, fs.ErrNotExist) && !writable && unkept:
		if aside, err := b.reportIn("report.earlier.json"); err != nil || aside.RunID != before {
			t.Errorf("the earlier report is lost: %v\n%s", err, got)
		}
		return
	case err != nil:
		t.Errorf("the report: %v\n%s", err, got)
		return
	case !writable && unkept && (r.RunID == before || r.Outcome == report.RunRunning):
		return
	case r.RunID == before:
		t.Errorf("this run left no report\n%s", got)
	}
	if err := agrees(r, got.code); err != nil {
		t.Errorf("%v\n%s", err, got)
	}
}

// agrees returns how a report and the end of its run differ.
func agrees(r report.Report, code int) error {
	switch {
	case r.ExitCode != code:
		return errors.New("the report has another exit code: " + string(r.Outcome))
	case (code == report.ExitOK) != (r.Outcome == report.RunSucceeded), r.Outcome == report.RunRunning, r.FinishedAt.IsZero():
		return errors.New("the report has another outcome: " + string(r.Outcome))
	case code == report.ExitOK:
		return nil
	}
	for _, e := range r.Errors {
		if e.Message != "" && (e.Hint != "" || e.Code == pluginv1.CodeInternal.String()) {
			return nil
		}
	}
	return errors.New("the report of a failed run holds no error")
}

// succeeds checks that a run succeeds and makes the image equal to that of an undisturbed one.
func (b *bench) succeeds(t *testing.T, want golden, edition int) {
	t.Helper()
	before := b.lastRun()
	got := b.apply(t, edition)
	if got.code != report.ExitOK {
		t.Errorf("the run after it: %s", got)
	}
	b.intact(t, want, edition)
	b.checkReport(t, before, got, true)
	b.prepared(t, want, edition)
}

func (b *bench) prepared(t *testing.T, want golden, edition int) {
	t.Helper()
	if d := machinetest.Diff(want.trees[edition-1], machinetest.Tree(t, b.root)); d != "" {
		t.Errorf("the image differs from that of an undisturbed run:\n%s", d)
	}
}

// TestFileSizeLimit is setrlimit(2)'s RLIMIT_FSIZE, which a service manager can set: first the parameters are too
// long, then the report.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	prlimit := require.Tool(t, "prlimit")
	want := undisturbed(t)
	for limit, exits := range map[string]int{"8192": report.ExitPrecondition, "1024": report.ExitState} {
		b := newBench(t)
		edition := b.begin(t, true, want)
		before := b.lastRun()
		put(t, b.stream, stream(edition))
		c := b.command(t.Context(), "apply", "--path", b.stream, "--root", b.root)
		c.Path, c.Args = prlimit, append([]string{"prlimit", "--fsize=" + limit}, c.Args...)
		var said strings.Builder
		c.Stderr = &said
		got := result{code: exit(t, c, c.Run()), stderr: said.String()}
		if got.code != exits || !strings.Contains(got.stderr, "file too large") || !strings.Contains(got.stderr, "hint: ") {
			t.Errorf("limit %s: want exit %d; %s", limit, exits, got)
		}
		if exits == report.ExitPrecondition && !strings.Contains(got.stderr, "ulimit -f") {
			t.Errorf("limit %s: no advice: %s", limit, got)
		}
		b.intact(t, want, edition)
		b.checkReport(t, before, got, exits == report.ExitPrecondition)
		b.succeeds(t, want, edition)
	}
}
