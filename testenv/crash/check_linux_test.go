package crash

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// The tests of this file prove that each check can fail.

func aReport(t *testing.T, change func(*report.Report)) []byte {
	t.Helper()
	r := report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, RunID: "1", Outcome: report.RunSucceeded, FinishedAt: time.Now(),
		Documents: []report.Document{{Kind: "Sysctl", Name: "a", Outcome: report.Changed}},
	}
	if change != nil {
		change(&r)
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func TestEveryPartOfAReportIsRefused(t *testing.T) {
	t.Parallel()
	data := aReport(t, nil)
	if _, err := parseReport(data); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		if _, err := parseReport(data[:n]); err == nil {
			t.Errorf("%d of %d bytes were accepted as a complete report", n, len(data))
		}
	}
}

func TestReportsThatContradictTheExitCode(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		code   int
		change func(*report.Report)
		wrong  bool
	}{
		"success":              {0, nil, false},
		"failure":              {1, func(r *report.Report) { r.ExitCode, r.Outcome, r.Errors = 1, report.RunFailed, []report.Error{{}} }, false},
		"another code":         {1, nil, true},
		"success that failed":  {1, func(r *report.Report) { r.ExitCode, r.Errors = 1, []report.Error{{}} }, true},
		"failure that is none": {0, func(r *report.Report) { r.Outcome = report.RunFailed }, true},
		"still running":        {1, func(r *report.Report) { r.ExitCode, r.Outcome, r.Errors = 1, report.RunRunning, []report.Error{{}} }, true},
		"no end":               {0, func(r *report.Report) { r.FinishedAt = time.Time{} }, true},
		"no reason":            {1, func(r *report.Report) { r.ExitCode, r.Outcome = 1, report.RunFailed }, true},
	} {
		r, err := parseReport(aReport(t, tt.change))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkReport(r, tt.code); (err != nil) != tt.wrong {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamed(t *testing.T) {
	t.Parallel()
	for words, want := range map[string][]string{
		"machineadm: processes of a run that was killed are still at work: 12 (sh -c (sleep 5)), 345 ([x]): the lock /run/lock is held\n": {"12", "345"},
		"machineadm: another run is in progress (process 7): the lock /run/lock is held\n":                                                nil,
		"": nil,
	} {
		if got := named(words); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}

func TestReaderFindsReports(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(t *testing.T, path string, whole []byte){
		"a half report":   func(t *testing.T, path string, whole []byte) { put(t, path, string(whole[:len(whole)/2])) },
		"an empty report": func(t *testing.T, path string, _ []byte) { put(t, path, "") },
	} {
		path, whole := filepath.Join(t.TempDir(), "report.json"), aReport(t, nil)
		r := readReports(path)
		<-r.read // a missing report is accepted
		put(t, path+".new", string(whole))
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
		<-r.read
		<-r.read // the second reading began after the report was written
		damage(t, path, whole)
		select {
		case <-r.done:
		case <-time.After(waitLimit):
			t.Errorf("%s: not seen", name)
		}
		if err := r.close(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, filepath.Join(dir, "etc/99-machineadm-a.conf"), "")
	put(t, filepath.Join(dir, "report.json"), "{}\n")
	if found, err := leftovers(dir); err != nil || len(found) > 0 {
		t.Fatalf("%v, %v", found, err)
	}
	put(t, filepath.Join(dir, "etc/.99-machineadm-a.conf.machineadm-tmp"), "")
	put(t, filepath.Join(dir, "etc/.link.machineadm-tmplink"), "")
	put(t, filepath.Join(dir, "run/.sockets-1/plugin1"), "")
	put(t, filepath.Join(dir, "state/half.json"), "{")
	put(t, filepath.Join(dir, "etc/.config.toml.machineadm-candidate"), "")
	put(t, filepath.Join(dir, "etc/machineadm/.pending"), "{}")
	put(t, filepath.Join(dir, "tmp/machineadm-run-1/plugin1"), "")
	put(t, filepath.Join(dir, "run/report.earlier.json"), "{}")
	if found, err := leftovers(dir); err != nil || len(found) != 8 {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := leftovers(filepath.Join(dir, "missing")); err == nil {
		t.Error("a missing directory has leftovers")
	}
}

func TestTreesDiffer(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(root string) error{
		"content": func(root string) error {
			return os.WriteFile(filepath.Join(root, "etc/hosts"), []byte("127.0.0.1 localhosT\n"), 0o600)
		},
		"mode":      func(root string) error { return os.Chmod(filepath.Join(root, "etc/hosts"), 0o640) },
		"directory": func(root string) error { return os.Chmod(filepath.Join(root, "etc"), 0o711) },
		"new file":  func(root string) error { return os.WriteFile(filepath.Join(root, "etc/new"), nil, 0o600) },
		"lost file": func(root string) error { return os.Remove(filepath.Join(root, "etc/hosts")) },
		"link": func(root string) error {
			link := filepath.Join(root, "etc/mtab")
			if err := os.Remove(link); err != nil {
				return err
			}
			return os.Symlink("/proc/mounts", link)
		},
	} {
		b, same := newBench(t), newBench(t)
		if d := machinetest.Diff(machinetest.Tree(t, b.root), machinetest.Tree(t, same.root)); d != "" {
			t.Fatalf("two new images differ:\n%s", d)
		}
		if err := damage(b.root); err != nil {
			t.Fatal(err)
		}
		if machinetest.Diff(machinetest.Tree(t, b.root), machinetest.Tree(t, same.root)) == "" {
			t.Errorf("%s: no difference", name)
		}
	}
}

// TestSurvivorsAreFound: one that is alive is found by its arguments and can be killed, unless it belongs to the rerun.
func TestSurvivorsAreFound(t *testing.T) {
	t.Parallel()
	mark := filepath.Join(t.TempDir(), "plugins")
	c := exec.CommandContext(t.Context(), "sh", "-c", "echo; read -r line", mark)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // ends one that was not killed
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // now it has its arguments
		t.Fatal(err)
	}
	found := marked(processes(t), mark, 0)
	if len(found) != 1 || found[0].id != c.Process.Pid || !strings.Contains(found[0].String(), mark) {
		t.Fatalf("found %v, want %d", found, c.Process.Pid)
	}
	if below := marked(processes(t), mark, os.Getpid()); len(below) > 0 {
		t.Errorf("a process of the run itself was reported as a survivor: %v", below)
	}
	another := found[0]
	another.start = "1"
	if kill(t, another) {
		t.Error("another process of the same ID was killed")
	}
	if !kill(t, found[0]) {
		t.Error("it was not killed")
	}
	if err := c.Wait(); err == nil {
		t.Error("it ended by itself")
	}
	if found := marked(processes(t), mark, 0); len(found) > 0 || kill(t, another) {
		t.Errorf("it has ended, but was found: %v", found)
	}
}

// TestObservations: what must not be found on the node after a kill, and after the rerun.
func TestObservations(t *testing.T) {
	t.Parallel()
	whole := "report " + strings.ReplaceAll(string(aReport(t, nil)), "\n", "") + "\n"
	running := strings.Replace(whole, string(report.RunSucceeded), string(report.RunRunning), 1)
	const before, half, want, sentinel = "state a 0\nstate b 0\n", "state a 1\nstate b 0\n", "state a 1\nstate b 1\n", "sentinel\n"
	old, done := parseObservation(before), parseObservation(want)
	for name, tt := range map[string]struct {
		text             string
		had              bool
		killWrong, wrong bool
		code             int
	}{
		"prepared":                         {want + sentinel + whole, false, false, false, 0},
		"prepared, but the code":           {want + sentinel + whole, false, false, true, 1},
		"no sentinel":                      {want + whole, true, false, true, 0},
		"half-way":                         {half + running, true, false, true, 0},
		"sentinel half-way":                {half + sentinel + running, false, true, true, 0},
		"old sentinel half-way":            {half + sentinel + running, true, true, true, 0},
		"old sentinel, nothing begun":      {before + sentinel + running, true, false, true, 0},
		"new sentinel, nothing begun":      {before + sentinel + running, false, true, true, 0},
		"half a report":                    {want + sentinel + whole[:len(whole)-4], false, true, true, 0},
		"no report":                        {want + sentinel + "report \n", false, false, true, 0},
		"a report that says it is running": {want + sentinel + running, false, false, true, 0},
	} {
		now := parseObservation(tt.text)
		if err := afterKill(now, old, done, tt.had); (err != nil) != tt.killWrong {
			t.Errorf("%s: after the kill: %v", name, err)
		}
		if err := afterRerun(now, done, tt.code); (err != nil) != tt.wrong {
			t.Errorf("%s: after the rerun: %v", name, err)
		}
	}
}

func TestPathsOfAnObservation(t *testing.T) {
	t.Parallel()
	now := parseObservation("path /etc/.a.machineadm-tmp\npath /etc/sysctl.d/99-machineadm-a.conf\npath /var/lib/machineadm/writes.json\n")
	if want := []string{"a temporary file: /etc/.a.machineadm-tmp", "a record of what is written: /var/lib/machineadm/writes.json"}; !slices.Equal(now.left, want) {
		t.Errorf("%q, want %q", now.left, want)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
