package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

func TestHostSurvivesEveryPlugin(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script  script
		spec    spec
		exit    int
		code    string // of the document's error
		says    string // part of the message
		details string // part of details.json
	}{
		"well-behaved":               {spec: spec{Touch: []string{"etc/a", "etc/b"}}, exit: report.ExitOK},
		"crash before the handshake": {script: script{Start: "crash"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "ended before the handshake", details: "crashing before the handshake"},
		"exit without a word":        {script: script{Start: "silent"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "ended before the handshake"},
		"garbage on stdout":          {script: script{Start: "garbage"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "is no handshake"},
		"another protocol version":   {script: script{Start: "version"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "another version of the protocol"},
		"crash after the handshake":  {script: script{Describe: "crash"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "ended without an answer"},
		"Describe fails":             {script: script{Describe: "internal"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "Internal"},
		"crash in Plan":              {spec: spec{Plan: "crash"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "crashed"},
		"panic in Plan":              {spec: spec{Plan: "panic"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "crashed", details: "noop panics"},
		"an error without details":   {spec: spec{Plan: "plain"}, exit: report.ExitFailed, code: "Internal", says: "FailedPrecondition", details: "no details"},
		"5 MiB of plan":              {spec: spec{Plan: "big", Touch: []string{"etc/a"}}, exit: report.ExitOK},
		"crash in Apply":             {spec: spec{Touch: []string{"etc/a"}, Apply: "crash"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "crashed", details: "noop: last words"},
		"no finished":                {spec: spec{Touch: []string{"etc/a"}, Apply: "none"}, exit: report.ExitFailed, code: report.CodeCrashed, says: "without finished"},
		"two finished":               {spec: spec{Touch: []string{"etc/a"}, Apply: "two"}, exit: report.ExitFailed, code: "Internal", says: "an event after finished"},
		"an event after finished":    {spec: spec{Touch: []string{"etc/a"}, Apply: "after"}, exit: report.ExitFailed, code: "Internal", says: "an event after finished"},
		"ends what it never started": {spec: spec{Touch: []string{"etc/a"}, Apply: "unstarted"}, exit: report.ExitFailed, code: "Internal", says: "never-started"},
		"1,000 events":               {spec: spec{Touch: []string{"etc/a"}, Apply: "events"}, exit: report.ExitOK},
		"an event of 5 MiB":          {spec: spec{Touch: []string{"etc/a"}, Apply: "big"}, exit: report.ExitOK},
		"fails with a hint":          {spec: spec{Touch: []string{"etc/a"}, Apply: "fail"}, exit: report.ExitPrecondition, code: "Precondition", says: "noop says fail", details: "raw output of noop"},
		"serves another kind": {
			script: script{Kinds: kinds("example.com/v2", "Noop")}, exit: report.ExitPrecondition, code: "Unsupported",
			says: "it serves Noop of example.com/v2",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.install(binary, tt.script)
			got := b.apply(doc("a", tt.spec))
			if got.code != tt.exit || got.report.ExitCode != tt.exit {
				t.Fatalf("exit %d, report %d, want %d\n%s", got.code, got.report.ExitCode, tt.exit, got)
			}
			if tt.exit == report.ExitOK {
				for _, file := range tt.spec.Touch {
					if _, err := os.Stat(filepath.Join(b.root, file)); err != nil {
						t.Error(err)
					}
				}
				return
			}
			require.Equal(t, []int{0}, got.report.Documents[0].Errors)
			e := got.report.Errors[0]
			if e.Code != tt.code || !strings.Contains(e.Message, tt.says) {
				t.Fatalf("error %+v, want %s with %q", e, tt.code, tt.says)
			}
			if tt.details != "" && !strings.Contains(got.details.Entries[e.Details], tt.details) {
				t.Errorf("details %q do not hold %q", got.details.Entries[e.Details], tt.details)
			}
		})
	}
}

func kinds(apiVersion, name string) []kind { return []kind{{APIVersion: apiVersion, Kind: name}} }

func TestPluginThatHangs(t *testing.T) {
	t.Parallel()
	t.Run("before the handshake", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{Start: "hang"})
		got := b.apply(doc("a", spec{}), "--timeout", "1s")
		if got.code != report.ExitDeadline || got.report.Outcome != report.RunFailed {
			t.Errorf("%s", got)
		}
	})
	t.Run("in Plan", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{})
		if got := b.apply(doc("a", spec{Plan: "hang"}), "--timeout", "1s"); got.code != report.ExitDeadline {
			t.Errorf("%s", got)
		}
	})
	t.Run("in Apply, until it is asked to stop", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.install(binary, script{})
		got := b.apply(doc("a", spec{Touch: []string{"a", "b"}, Apply: "hang"}), "--timeout", "1s")
		if got.code != report.ExitDeadline {
			t.Errorf("%s", got)
		}
		if _, err := os.Stat(filepath.Join(b.root, "a")); err != nil {
			t.Errorf("the change in progress was not finished: %v", err)
		}
		if _, err := os.Stat(filepath.Join(b.root, "b")); err == nil {
			t.Error("another change was started after Stop")
		}
	})
}

// TestNothingOutlivesTheHost starts a grandchild that has left its session and ignores every signal that it can.
func TestNothingOutlivesTheHost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec spec
		end  func(t *testing.T, host *os.Process)
		exit int // -1: killed
	}{
		"at the end of a good run":         {spec: spec{Touch: []string{"a"}}},
		"when the plugin crashes":          {spec: spec{Touch: []string{"a"}, Apply: "crash"}, exit: report.ExitFailed},
		"when the host gets SIGTERM":       {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGTERM), exit: report.ExitInterrupted},
		"when the host gets SIGINT":        {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGINT), exit: report.ExitInterrupted},
		"when the host's terminal is lost": {spec: spec{Touch: []string{"a", "b"}, Apply: "hang"}, end: send(syscall.SIGHUP), exit: report.ExitInterrupted},
		"when the host is killed":          {spec: spec{Touch: []string{"a"}, Apply: "hangForever"}, end: send(syscall.SIGKILL), exit: -1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			child, witness := filepath.Join(b.dir, "child.pid"), filepath.Join(b.dir, "witness")
			b.install(binary, script{Child: child, Witness: witness})
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // bounds a host that does not end
			defer cancel()
			c := b.command(ctx, "apply", "--root", b.root, "--path", b.stream(doc("a", tt.spec)))
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			if tt.end != nil {
				eventually(t, "the change has begun", func() bool {
					data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
					return err == nil && strings.Contains(string(data), "file:a")
				})
				tt.end(t, c.Process)
			}
			_ = c.Wait() // the exit code is checked
			if c.ProcessState.ExitCode() != tt.exit {
				t.Errorf("exit %d, want %d", c.ProcessState.ExitCode(), tt.exit)
			}
			var plugin struct {
				PID json.Number `json:"pid"`
			}
			data, err := os.ReadFile(witness)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &plugin); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the plugin is gone", func() bool { return !alive(plugin.PID.String()) })
			// The child may have been killed before it could write its process ID: then it is gone too.
			if pid, err := os.ReadFile(child); err == nil && tt.exit >= 0 {
				eventually(t, "the plugin's child is gone", func() bool { return !alive(strings.TrimSpace(string(pid))) })
			}
			if tt.exit < 0 {
				b.endSurvivor(child)
			}
			eventually(t, "the lock is free", func() bool {
				return b.host("apply", "--root", b.root, "--path", b.stream(doc("a", spec{}))).code != report.ExitLocked
			})
		})
	}
}

// endSurvivor ends a child that is still alive after the host was killed: it holds the lock, and the next run names it.
func (b *bench) endSurvivor(pidFile string) {
	b.t.Helper()
	eventually(b.t, "the child says who it is", func() bool { _, err := os.Stat(pidFile); return err == nil })
	data, err := os.ReadFile(pidFile)
	require.NoError(b.t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	require.NoError(b.t, err)
	got := b.host("apply", "--root", b.root, "--path", b.stream(doc("a", spec{})))
	require.Equal(b.t, report.ExitLocked, got.code, "%s", got)
	require.Contains(b.t, got.stderr, fmt.Sprintf("processes of a run that was killed are still at work: %d (/bin/sh -c ", pid))
	// It leads a session; its own child holds the lock as well. The command, because this file is vetted for Windows too.
	require.NoError(b.t, exec.CommandContext(b.t.Context(), "kill", "-KILL", "--", fmt.Sprint(-pid)).Run())
}

func send(s os.Signal) func(*testing.T, *os.Process) {
	return func(t *testing.T, p *os.Process) {
		t.Helper()
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPluginReceivesNothingOfTheHost(t *testing.T) {
	b := newBench(t)
	witness := filepath.Join(b.dir, "witness")
	b.install(binary, script{Witness: witness})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := b.command(ctx, "apply", "--root", b.root, "--path", b.stream(doc("a", spec{})))
	c.Env = []string{"HOME=/nowhere", "PATH=/evil", "CANARY=c4n4ry", "HTTPS_PROXY=http://user:c4n4ry@proxy.example:3128", "LD_PRELOAD="}
	c.Stdin = strings.NewReader("c4n4ry")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	data, err := os.ReadFile(witness)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "c4n4ry") {
		t.Errorf("the plugin received data of the host: %s", data)
	}
	var seen struct {
		Args, Environ []string
		Stdin         string
	}
	if err := json.Unmarshal(data, &seen); err != nil {
		t.Fatal(err)
	}
	if len(seen.Args) != 1 || seen.Stdin != "" {
		t.Errorf("arguments %q, stdin %q, want the path alone and nothing", seen.Args, seen.Stdin)
	}
	for _, variable := range seen.Environ {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "PLUGIN_"), name == "MACHINEADM_PLUGIN_COOKIE", name == "LANG", name == "HOME":
		case name == "PATH" && value == "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin":
		case name == "HTTPS_PROXY" && value == "http://proxy.example:3128":
		default:
			t.Errorf("the plugin's environment has %s", variable)
		}
	}
}

func TestCanaryOnStderrStaysWithRoot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install(binary, script{Say: "c4n4ry before"})
	got := b.apply(doc("a", spec{Touch: []string{"a"}, Apply: "crash", Say: "c4n4ry in apply\x1b[31m"}))
	data, err := os.ReadFile(filepath.Join(b.run, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "c4n4ry") {
		t.Errorf("report.json, which everyone reads, repeats a plugin's stderr:\n%s", data)
	}
	if strings.Contains(got.stdout+got.stderr, "c4n4ry") {
		t.Errorf("at the default log level the plugin's stderr is shown:\n%s", got)
	}
	info, err := os.Stat(filepath.Join(b.run, "details.json"))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 || !strings.Contains(got.details.Entries["document-1"], "c4n4ry in apply") {
		t.Errorf("details.json has mode %v and entries %q", info.Mode(), got.details.Entries)
	}
}

func TestTwoRunsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install(binary, script{})
	first := b.command(context.Background(), "apply", "--root", b.root, "--path", b.stream(doc("a", spec{Touch: []string{"a", "b"}, Apply: "hang"})))
	if err := first.Start(); err != nil {
		t.Fatal(err)
	}
	reportPath := filepath.Join(b.run, "report.json")
	eventually(t, "the first run has begun", func() bool {
		data, err := os.ReadFile(reportPath)
		return err == nil && strings.Contains(string(data), "file:a")
	})
	before, err := os.ReadFile(reportPath)
	if err != nil {
		t.Fatal(err)
	}
	second := b.host("apply", "--root", b.root, "--path", filepath.Join(b.dir, "stream.yaml"))
	if second.code != report.ExitLocked || !strings.Contains(second.stderr, "another run is in progress") {
		t.Errorf("%s", second)
	}
	after, err := os.ReadFile(reportPath)
	if err != nil {
		t.Fatal(err)
	}
	if string(before) != string(after) {
		t.Error("the second run touched the report of the first")
	}
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // its exit code is 8
	if first.ProcessState.ExitCode() != report.ExitInterrupted {
		t.Errorf("exit %d", first.ProcessState.ExitCode())
	}
}

func TestChoiceAmongInstalledPlugins(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install("machineadm-noop-plugin-one", script{Fitness: "installed"})
	b.install("machineadm-noop-plugin-two", script{Fitness: "active"})
	stream := func(name string) string {
		return "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {touch: [a]}\n"
	}
	got := b.apply(stream("a"))
	if got.code != report.ExitOK || got.report.Documents[0].Provider != "two" {
		t.Fatalf("provider %q\n%s", got.report.Documents[0].Provider, got)
	}
	b.script(filepath.Join(b.plugins, "machineadm-noop-plugin-one"), script{Fitness: "active"})
	if got := b.apply(stream("b")); got.code != report.ExitPrecondition || !strings.Contains(got.stderr, "plugin-one and machineadm-noop-plugin-two") {
		t.Errorf("a tie: %s", got)
	}
	vendor := filepath.Join(b.root, "etc/machineadm")
	if err := os.WriteFile(filepath.Join(vendor, "defaults.yaml"), []byte("Noop: one\n"), 0o644); err != nil { //nolint:gosec // read by everyone
		t.Fatal(err)
	}
	if got := b.apply(stream("b")); got.code != report.ExitOK || got.report.Documents[0].Provider != "one" {
		t.Errorf("the vendor's default: %s", got)
	}
	if got := b.apply(stream("a")); got.code != report.ExitOK || got.report.Documents[0].Provider != "two" {
		t.Errorf("the image's choice for a document overrides the default: %s", got)
	}
	choices, err := os.ReadFile(filepath.Join(vendor, "choices.json"))
	require.NoError(t, err)
	require.JSONEq(t, `{"Noop/a": "two", "Noop/b": "one"}`, string(choices))
}

func TestUntrustedPluginIsNeverStarted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	witness := filepath.Join(b.dir, "witness")
	path := b.install(binary, script{Witness: witness})
	if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // untrusted
		t.Fatal(err)
	}
	got := b.apply(doc("a", spec{}))
	if got.code != report.ExitUntrusted || !strings.Contains(got.stderr, path) || !strings.Contains(got.stderr, "chmod go-w") {
		t.Errorf("%s", got)
	}
	if got := b.host("plugins", "inspect"); got.code != report.ExitUntrusted {
		t.Errorf("inspect: %s", got)
	}
	if _, err := os.Stat(witness); err == nil {
		t.Error("an untrusted plugin was started")
	}
}

func TestBrokenInput(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.install(binary, script{})
	good := doc("good", spec{Touch: []string{"a"}})
	for name, tt := range map[string]struct{ stream, says string }{
		"empty":                        {"", "stream.yaml"},
		"comments only":                {"# nothing\n", "stream.yaml"},
		"a syntax error in the second": {good + "---\nkind: [\n" + doc("bad", spec{Plan: "invalid", Field: "spec.touch"}), "stream.yaml:"},
		"an unknown field":             {"apiVersion: example.com/v1\nkind: Noop\nmetadata: {nam: x}\nspec: {provider: test}\n", "metadata.nam"},
		"NUL":                          {good + "---\nkind: \"a\x00\"\n", "stream.yaml:"},
		"UTF-16":                       {"\xff\xfea\x00", "stream.yaml"},
		"huge":                         {strings.Repeat("#\n", 9<<20), "16 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.apply(tt.stream)
			if got.code != report.ExitUsage || got.report.Outcome != report.RunInvalid || len(got.report.Errors) == 0 {
				t.Fatalf("%s\nreport: %+v", got, got.report)
			}
			if !strings.Contains(got.stderr, tt.says) {
				t.Errorf("stderr does not say %q:\n%s", tt.says, got.stderr)
			}
			if _, err := os.Stat(filepath.Join(b.root, "a")); err == nil {
				t.Error("something was changed")
			}
		})
	}
	t.Run("a missing file", func(t *testing.T) {
		got := b.host("apply", "--root", b.root, "--path", filepath.Join(b.dir, "none.yaml"))
		if got.code != report.ExitUsage || !strings.Contains(got.stderr, "none.yaml") {
			t.Errorf("%s", got)
		}
	})
	t.Run("both errors of a stream are reported", func(t *testing.T) {
		got := b.apply("---\nkind: [\n" + doc("bad", spec{Plan: "invalid", Field: "spec.plan"}))
		if got.code != report.ExitUsage || len(got.report.Errors) != 2 {
			t.Errorf("%s", got)
		}
	})
}
