package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

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
		return "apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: " + name + "}\nspec: {touch: [" + name + "]}\n"
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
