package cli

import (
	"bufio"
	"encoding/json"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/host/state"
)

const hang = `{"start": "hang"}`

// TestExitCodes goes through the table of exit codes, and that the report says the same.
func TestExitCodes(t *testing.T) {
	good := noopDoc("a", "touch: [a]")
	tests := map[string]struct {
		prepare  func(t *testing.T, b *bench)
		args     []string // instead of an apply to the image
		script   string
		stream   string
		exit     int
		outcome  report.Outcome
		says     []string
		noReport bool
	}{
		"0 done": {stream: good, exit: report.ExitOK, outcome: report.RunSucceeded},
		"1 a document failed": {
			stream: noopDoc("a", "touch: [a], apply: crash"), exit: report.ExitFailed, outcome: report.RunFailed,
			says: []string{"stream.yaml:2:1: Noop/a: the plugin " + testPlugin + " crashed", "; running again is safe", "run/report.json"},
		},
		"2 the configuration": {
			stream: good + noopDoc("b", "plan: invalid, field: spec.plan") + noopDoc("a", "touch: [b]"),
			exit:   report.ExitUsage, outcome: report.RunInvalid,
			says: []string{"stream.yaml:10:24: Noop/b: spec.plan: noop does not like it", "stream.yaml:14:12: Noop/a: metadata.name: duplicates the name"},
		},
		"4 a precondition": {
			stream: noopDoc("a", "plan: precondition"), exit: report.ExitPrecondition, outcome: report.RunFailed,
			says: []string{"stream.yaml:2:1: Noop/a: noop says precondition", "hint: ask noop"},
		},
		"4 a missing plugin": {
			stream: strings.Replace(good, "test", "none", 1), exit: report.ExitPrecondition, outcome: report.RunFailed,
			says: []string{"spec.provider: plugin machineadm-noop-plugin-none: the file machineadm-noop-plugin-none is not installed", "--plugin-dir"},
		},
		"4 no provider of a kind": {
			stream: "apiVersion: example.com/v1\nkind: FooBar\nmetadata: {name: a}\nspec: {}\n", exit: report.ExitPrecondition,
			outcome: report.RunFailed, says: []string{"no plugin for FooBar is installed", "machineadm-foo-bar-plugin-PROVIDER"},
		},
		"5 another run": {
			prepare: func(t *testing.T, b *bench) {
				t.Helper()
				lock, err := state.Acquire(b.root)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := lock.Release(); err != nil {
						t.Error(err)
					}
				})
			},
			stream: good, exit: report.ExitLocked, says: []string{"another run is in progress", "/root is held", "hint: wait"}, noReport: true,
		},
		"6 an untrusted plugin": {
			prepare: func(t *testing.T, b *bench) {
				t.Helper()
				if err := os.Chmod(filepath.Join(b.plugins, testPlugin), 0o757); err != nil { //nolint:gosec // that is the point
					t.Fatal(err)
				}
			},
			stream: good, exit: report.ExitUntrusted, outcome: report.RunFailed, says: []string{"can be written by everyone", "hint: chmod go-w "},
		},
		"7 a deadline": {
			script: hang, args: []string{"--timeout", "700ms"}, stream: good, exit: report.ExitDeadline, outcome: report.RunFailed,
			says: []string{"took longer than its 700ms", "--timeout"},
		},
		"9 no state": {
			prepare: func(t *testing.T, b *bench) { t.Helper(); write(t, b.state, "a file") },
			stream:  good, exit: report.ExitState, outcome: report.RunFailed, says: []string{"/state is not a directory", "hint: "},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop(tt.script)
			if tt.prepare != nil {
				tt.prepare(t, b)
			}
			got := b.apply(tt.stream, tt.args...)
			if got.code != tt.exit {
				t.Fatalf("want %d, got %s", tt.exit, got)
			}
			for _, want := range tt.says {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("want %q on stderr; got %s", want, got)
				}
			}
			if tt.noReport {
				if exists(t, filepath.Join(b.runs, "report.json")) {
					t.Error("there is a report")
				}
				return
			}
			if r := b.report(); r.ExitCode != tt.exit || r.Outcome != tt.outcome {
				t.Errorf("report: exit code %d, outcome %s, want %s", r.ExitCode, r.Outcome, tt.outcome)
			}
		})
	}
}

// TestExitRebootAndDiffers: a reboot is asked for on a live machine alone, here one of which only a file of the test
// is touched, and 10 is a plan's.
func TestExitRebootAndDiffers(t *testing.T) {
	const sentinel = "/run/cluster-api/bootstrap-success.complete"
	if exists(t, sentinel) {
		t.Skipf("this machine is a node: a live run would remove %s", sentinel)
	}
	b := newBench(t)
	b.noop("{}")
	mark := filepath.Join(b.dir, "mark")
	stream := b.stream(noopDoc("a", "touch: ["+mark+"], reboot: AfterRun") + noopDoc("b", "touch: ["+mark+"2], reboot: BeforeNext"))
	for _, args := range [][]string{{"plan"}, {"apply", "--dry-run"}} {
		got := b.run(append(args, "--path", stream)...)
		if got.code != report.ExitDiffers || !strings.Contains(got.out, "2 documents: 2 to change") || exists(t, mark) || exists(t, b.runs) {
			t.Errorf("%s: %s", args, got)
		}
	}
	got := b.run("apply", "--path", stream)
	if got.code != report.ExitReboot || !strings.Contains(got.errOut, "the machine must reboot") || b.report().Outcome != report.RunRebootRequired {
		t.Errorf("apply: %s", got)
	}
	if !exists(t, mark) || exists(t, sentinel) {
		t.Error("the change was not made, or there is a sentinel")
	}
	if got := b.run("plan", "--path", stream); got.code != report.ExitDiffers || !strings.Contains(got.out, "a reboot is pending: Noop/a") {
		t.Errorf("plan of what is done, before the reboot: %s", got)
	}
	if got := b.run("apply", "--path", stream); got.code != report.ExitReboot {
		t.Errorf("apply of what is done, before the reboot: %s", got)
	}
}

// TestExitInterrupted sends this process the signals that the run takes for itself.
func TestExitInterrupted(t *testing.T) {
	for name, signals := range map[string]int{"in order": 1, "at once": 2} {
		t.Run(name, func(t *testing.T) {
			late := make(chan os.Signal, 8) // a signal that comes too late must not end the tests
			signal.Notify(late, syscall.SIGTERM)
			defer signal.Stop(late)
			b := newBench(t)
			b.noop("{}")
			how := map[int]string{1: "hang", 2: "hangForever"}[signals]
			ended := make(chan result, 1)
			go func() { ended <- b.apply(noopDoc("a", "touch: [a, b], apply: "+how)) }()
			eventually(t, "the change has begun", func() bool {
				data, err := os.ReadFile(filepath.Join(b.runs, "report.json"))
				return err == nil && strings.Contains(string(data), "file:a")
			})
			begun := time.Now()
			for range signals {
				if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				<-late // two signals that are pending at once are one
			}
			got := <-ended
			if got.code != report.ExitInterrupted || b.report().Outcome != report.RunInterrupted {
				t.Errorf("%s", got)
			}
			if finished := exists(t, filepath.Join(b.root, "a")); finished != (signals == 1) {
				t.Errorf("the change in hand was finished: %v", finished)
			}
			if exists(t, filepath.Join(b.root, "b")) {
				t.Error("another change was begun")
			}
			if took := time.Since(begun); took > run.StopGrace {
				t.Errorf("it took %s", took)
			}
		})
	}
}

// lines decodes what --output json writes: one object a line.
func lines(t *testing.T, text string) []map[string]any {
	t.Helper()
	var out []map[string]any
	scanner := bufio.NewScanner(strings.NewReader(text))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		var event map[string]any
		if err := json.Unmarshal(scanner.Bytes(), &event); err != nil {
			t.Fatalf("%v in the line %q", err, scanner.Text())
		}
		out = append(out, event)
	}
	if err := scanner.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestJSON(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	path := b.stream(noopDoc("a", "touch: [a]"))
	missing, more := filepath.Join(b.dir, "none.yaml"), filepath.Join(b.dir, "more.yaml")
	write(t, more, noopDoc("a", "touch: [other]"))
	for name, tt := range map[string]struct {
		args []string
		exit int
		code string // of the report's error
	}{
		"apply":                       {[]string{"apply", "--root", b.root, "--path", path}, report.ExitOK, ""},
		"plan":                        {[]string{"plan", "--root", b.root, "--path", more}, report.ExitDiffers, ""},
		"validate":                    {[]string{"validate", "--path", path}, report.ExitOK, ""},
		"a file that is missing":      {[]string{"apply", "--root", b.root, "--path", missing}, report.ExitUsage, report.CodeUsage},
		"state that cannot be kept":   {[]string{"apply", "--root", b.root, "--path", path, "--state-dir", "/dev/null"}, report.ExitState, report.CodeState},
		"a run that could not report": {[]string{"apply", "--root", b.root, "--path", path, "--run-dir", "/dev/null"}, report.ExitState, report.CodeState},
	} {
		got := b.run(append(tt.args, "--output", "json")...)
		if got.code != tt.exit {
			t.Fatalf("%s: %s", name, got)
		}
		events := lines(t, got.out)
		last := events[len(events)-1]
		data, err := json.Marshal(last["report"])
		if err != nil {
			t.Fatal(err)
		}
		var r report.Report
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		if last["type"] != string(run.EventRunFinished) || r.ExitCode != tt.exit || r.Kind != report.Kind {
			t.Errorf("%s: the last event is %v", name, last)
		}
		if tt.code != "" && (len(r.Errors) != 1 || r.Errors[0].Code != tt.code || r.Errors[0].Hint == "") {
			t.Errorf("%s: errors %+v, want the code %s", name, r.Errors, tt.code)
		}
	}
}
