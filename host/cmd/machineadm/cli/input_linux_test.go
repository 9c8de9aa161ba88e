package cli

import (
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

// endless is a standard input such as /dev/zero.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestStreamsThatAreNone: none blocks the command, and each error has a remedy.
func TestStreamsThatAreNone(t *testing.T) {
	b := newBench(t)
	fifo, large := filepath.Join(b.dir, "fifo"), filepath.Join(b.dir, "large.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, large, strings.Repeat("# nothing\n", 17<<20/10))
	// For root the file must be trusted, and only a regular file is.
	special, says := report.ExitUsage, "is not a regular file"
	if os.Geteuid() == 0 {
		special = report.ExitUntrusted
	}
	for name, tt := range map[string]struct {
		path string
		in   func() io.Reader
		exit int
		says []string
	}{
		"a FIFO":               {path: fifo, exit: special, says: []string{says, "hint: "}},
		"a directory":          {path: b.dir, exit: report.ExitUsage, says: []string{"is a directory", "hint: name the file itself"}},
		"a device":             {path: "/dev/zero", exit: special, says: []string{says, "hint: "}},
		"a missing file":       {path: filepath.Join(b.dir, "none.yaml"), exit: report.ExitUsage, says: []string{"none.yaml: cannot be read: no such file", "hint: name a file that exists, or -"}},
		"17 MiB":               {path: large, exit: report.ExitUsage, says: []string{"larger than 16 MiB", "hint: "}},
		"an endless input":     {path: "-", in: func() io.Reader { return endless{} }, exit: report.ExitUsage, says: []string{"<stdin>: is larger than 16 MiB"}},
		"an empty input":       {path: "-", in: func() io.Reader { return strings.NewReader("") }, exit: report.ExitUsage, says: []string{"<stdin>: contains no document"}},
		"an input that breaks": {path: "-", in: func() io.Reader { return io.MultiReader(strings.NewReader("x: "), broken{}) }, exit: report.ExitUsage, says: []string{"<stdin>: cannot be read: io: read/write on closed pipe"}},
	} {
		for _, command := range []string{"apply", "plan", "validate"} {
			args := []string{command, "--path", tt.path}
			if command != "validate" {
				args = append(args, "--root", b.root)
			}
			var in io.Reader
			if tt.in != nil {
				in = tt.in()
			}
			got := execute(t, in, b.flags(args...)...)
			if got.code != tt.exit {
				t.Errorf("%s: %s: %s", command, name, got)
			}
			for _, want := range tt.says {
				if !strings.Contains(got.errOut, want) {
					t.Errorf("%s: %s: want %q on stderr; got %s", command, name, want, got)
				}
			}
			if command == "apply" && (b.report().ExitCode != tt.exit || b.report().Outcome != report.RunInvalid) {
				t.Errorf("%s: the report says %d %s", name, b.report().ExitCode, b.report().Outcome)
			}
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStreamFromStandardInput(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	got := execute(t, strings.NewReader(noopDoc("a", "touch: [a]")), b.flags("apply", "--root", b.root, "--path", "-")...)
	if got.code != report.ExitOK || !exists(t, filepath.Join(b.root, "a")) {
		t.Errorf("%s", got)
	}
}

// TestStandardInputThatNeverEnds: standard input is neither written nor closed.
func TestStandardInputThatNeverEnds(t *testing.T) {
	b := newBench(t)
	in, keep, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, f := range []*os.File{keep, in} {
			if err := f.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	got := execute(t, in, b.flags("apply", "--root", b.root, "--path", "-", "--timeout", "50ms")...)
	if got.code != report.ExitDeadline || !strings.Contains(got.errOut, "<stdin>: was not read completely within --timeout") {
		t.Errorf("%s", got)
	}
	late := make(chan os.Signal, 64)
	signal.Notify(late, syscall.SIGTERM)
	defer signal.Stop(late)
	ended := make(chan result, 1)
	go func() { ended <- execute(t, in, b.flags("apply", "--root", b.root, "--path", "-")...) }()
	again := time.NewTicker(20 * time.Millisecond) // when the command listens is not to be seen from here
	defer again.Stop()
	for {
		select {
		case got := <-ended:
			if got.code != report.ExitInterrupted || !strings.Contains(got.errOut, "the run was interrupted") {
				t.Errorf("%s", got)
			}
			return
		case <-again.C:
			if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
		case <-t.Context().Done():
			t.Fatal("it does not end")
		}
	}
}

func TestStreamThatOthersCanWrite(t *testing.T) {
	require.Root(t) // only what root reads is checked
	b := newBench(t)
	b.noop("{}")
	path := b.stream(noopDoc("a", "touch: [a]"))
	if err := os.Chmod(path, 0o666); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	got := b.run("apply", "--root", b.root, "--path", path)
	if got.code != report.ExitUntrusted || !strings.Contains(got.errOut, "hint: chmod go-w "+path) || exists(t, filepath.Join(b.root, "a")) {
		t.Errorf("%s", got)
	}
	if b.report().ExitCode != report.ExitUntrusted {
		t.Errorf("report: %+v", b.report())
	}
}

func TestSecretsThatOthersCanRead(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	path := b.stream(noopDoc("a", "touch: [a], password: {value: c4n4ry}"))
	for mode, warned := range map[os.FileMode]bool{0o644: true, 0o600: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		got := b.run("apply", "--root", b.root, "--path", path, "--allow-secrets")
		if got.code != report.ExitOK || strings.Contains(got.errOut, "chmod 600 "+path) != warned {
			t.Errorf("mode %o: %s", mode, got)
		}
		if strings.Contains(got.out+got.errOut, "c4n4ry") {
			t.Errorf("the secret is shown: %s", got)
		}
	}
	got := b.run("apply", "--root", b.root, "--path", path)
	if got.code != report.ExitUsage || !strings.Contains(got.errOut, "spec.password: a secret would be written into an image") {
		t.Errorf("%s", got)
	}
}

func TestVendorsDefaults(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		exit int
		says string
	}{
		"one that is installed":  {text: "Noop: test\n", exit: report.ExitOK},
		"none":                   {text: "# none\n", exit: report.ExitOK},
		"a path for a provider":  {text: "Noop: ../../bin/sh\n", exit: report.ExitUsage, says: "defaults.yaml: Noop: "},
		"no mapping":             {text: "- Noop\n", exit: report.ExitUsage, says: "defaults.yaml:1:1: must be a mapping"},
		"one that is not there":  {text: "Noop: none\n", exit: report.ExitPrecondition, says: "machineadm-noop-plugin-none is not installed"},
		"larger than any can be": {text: strings.Repeat("# x\n", 1<<19), exit: report.ExitUsage, says: "defaults.yaml: cannot be read: the file is larger than 1 MiB"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop("{}")
			write(t, filepath.Join(b.root, "etc/machineadm/defaults.yaml"), tt.text)
			got := b.apply("apiVersion: example.com/v1\nkind: Noop\nmetadata: {name: a}\nspec: {touch: [a]}\n")
			if got.code != tt.exit || !strings.Contains(got.errOut, tt.says) {
				t.Errorf("%s", got)
			}
			if tt.exit != report.ExitOK && !strings.Contains(got.errOut, "hint: ") && !strings.Contains(tt.says, "mapping") && !strings.Contains(tt.says, "MiB") {
				t.Errorf("no hint: %s", got)
			}
		})
	}
}
