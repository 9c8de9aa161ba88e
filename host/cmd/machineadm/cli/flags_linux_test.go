package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/version"
)

// TestWrongFlags: all of it is said before anything is read, locked or started.
func TestWrongFlags(t *testing.T) {
	t.Parallel()
	lines := [][]string{
		{"aply"},
		{"whatever"},
		{"--path", "node.yaml"},
		{"--bootstrap"},
		{"--bootstrap", "plan", "--path", "node.yaml"},
		{"--bootstrap=perhaps"},
		{"apply"},
		{"apply", "node.yaml"},
		{"apply", "--path", "node.yaml", "now\x1b[31m"},
		{"apply", "--path", ""},
		{"apply", "--path", "node.yaml", "--colour"},
		{"apply", "--pth", "node.yaml"},
		{"plan", "--dry-run", "--path", "node.yaml"},
		{"status", "--otput=json"},
		{"status", "-xo", "json"},
		{"help", "aply"},
		{"help", "plugins", "lst"},
		{"completion", "bsh"},
		{"apply", "--path", "node.yaml", "--output", "yaml"},
		{"apply", "--path", "node.yaml", "--phase", "last"},
		{"apply", "--path", "node.yaml", "--dry-run", "--reboot"},
		{"apply", "--path", "node.yaml", "--root", "/nonexistent", "--reboot"},
		{"apply", "--path", "node.yaml", "--allow-secrets"},
		{"apply", "--path", "node.yaml", "--root", ""},
		{"apply", "--path", "node.yaml", "--root", "/nonexistent/image"},
		{"apply", "--path", "node.yaml", "--root", "/dev/null"},
		{"apply", "--path", "node.yaml", "--root", "/"},
		{"apply", "--path", "node.yaml", "--root", "//.."},
		{"apply", "--path", "node.yaml", "--root", "/proc/self/root"},
		{"apply", "--path", "node.yaml", "--plugin-dir", ""},
		{"apply", "--path", "node.yaml", "--plugin-dir", "/nonexistent/plugins"},
		{"plugins", "list", "--plugin-dir", "/dev/null"},
		{"apply", "--path", "node.yaml", "--state-dir", ""},
		{"apply", "--path", "node.yaml", "--run-dir="},
		{"apply", "--path", "node.yaml", "--timeout", "0"},
		{"apply", "--path", "node.yaml", "--timeout", "-5m"},
		{"apply", "--path", "node.yaml", "--timeout", "soon"},
		{"apply", "--path", "node.yaml", "--log-level", "warn+1"},
		{"apply", "--path", "node.yaml", "--log-format", "xml"},
		{"apply", "--resume", "--path", "node.yaml"},
		{"apply", "--resume", "--root", "/nonexistent"},
		{"apply", "--resume", "--dry-run"},
		{"apply", "--resume", "--phase", "preparation"},
		{"plan", "--resume"},
		{"plan", "--path", "node.yaml", "--reboot"},
		{"validate", "--path", "node.yaml", "--root", "/"},
		{"validate", "node.yaml"},
		{"status", "--output", "xml"},
		{"status", "--log-level", "loud"},
		{"plugins", "lst"},
		{"plugins", "list", "all"},
		{"plugins", "list", "--output", "xml"},
		{"plugins", "inspect", "../../../bin/sh"},
		{"version", "now"},
		{"version", "-o", "yaml"},
		{"plan", "-f", "node.yaml", "--phase", "last"},
		{"plugins", "new"},
	}
	var all strings.Builder
	for _, args := range lines {
		got := execute(t, nil, args...)
		if got.code != report.ExitUsage || got.out != "" {
			t.Errorf("%q: %s", args, got)
		}
		fmt.Fprintf(&all, "$ machineadm")
		for _, arg := range args {
			if arg == "" || strings.ContainsFunc(arg, func(r rune) bool { return r < ' ' }) {
				arg = fmt.Sprintf("%q", arg)
			}
			fmt.Fprintf(&all, " %s", arg)
		}
		fmt.Fprintf(&all, "\n%s", got.errOut)
	}
	golden(t, "wrong-flags.txt", all.String())
}

func TestWithoutACommandThereIsHelp(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"plugins"}, {"help", "apply"}} {
		if got := execute(t, nil, args...); got.code != report.ExitOK || !strings.Contains(got.out, "Usage:") || got.errOut != "" {
			t.Errorf("%q: %s", args, got)
		}
	}
}

func TestRootIsNormalized(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	link := filepath.Join(b.dir, "link")
	if err := os.Symlink("root", link); err != nil {
		t.Fatal(err)
	}
	stream := b.stream(noopDoc("a", "touch: [a]"))
	for _, root := range []string{b.root + "/", b.root + "//.", link, link + "/../root/"} {
		if got := b.run("apply", "--root", root, "--path", stream); got.code != report.ExitOK || b.report().Root != b.root {
			t.Errorf("--root %s: root of the report %q\n%s", root, b.report().Root, got)
		}
	}
	t.Chdir(b.dir)
	if got := b.run("apply", "--root", "root", "--path", "stream.yaml"); got.code != report.ExitOK || b.report().Root != b.root {
		t.Errorf("relative: root of the report %q\n%s", b.report().Root, got)
	}
}

func TestStandardOutputThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := full.Close(); err != nil {
			t.Error(err)
		}
	}()
	var errOut strings.Builder
	code := Execute(t.Context(), []string{"version"}, streams{out: full, err: &errOut})
	if code != report.ExitFailed || !strings.Contains(errOut.String(), "no space left on device") {
		t.Errorf("exit %d: %s", code, errOut.String())
	}
}

func TestCompletionOfFlags(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"apply --phase ":      "preparation\nprovisioning\nall\n:4\n",
		"plan -o ":            "text\njson\n:4\n",
		"version --output ":   "text\njson\n:4\n",
		"status --log-level ": "debug\ninfo\nwarn\nerror\n:4\n",
		"apply --pat":         "--path\tthe stream's FILE, or - for standard input\n:4\n",
		"apply --path ":       ":0\n",
		"apply --root ":       ":16\n",
		"apply ":              ":4\n",
		"explain ":            "ContainerRuntime\nTimesync\nSysctl\nDomainJoin\nKubernetesNode\nRemoteConfig\nEncryptedConfig\nReportTarget\n:6\n",
		"plugins new ":        "ContainerRuntime\nTimesync\nSysctl\nDomainJoin\nKubernetesNode\nRemoteConfig\nEncryptedConfig\nReportTarget\n:4\n",
		"plugins new Sysctl ": ":4\n",
	} {
		got := execute(t, nil, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		assert.Equal(t, want, got.out, line)
	}
}

func TestCompletionOfPlugins(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	other := "machineadm-noop-plugin-other"
	b.install(noopBinary, other, "")
	assert.Equal(t, other+"\n"+testPlugin+"\n:4\n", b.run("__complete", "plugins", "inspect", "").out)
	assert.Equal(t, other+"\n:4\n", b.run("__complete", "plugins", "inspect", testPlugin, "").out)
}

func TestVersionOutput(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "machineadm "+version.String()+"\n", execute(t, nil, "version").out)
	assert.JSONEq(t, `{"version": "`+version.String()+`"}`, execute(t, nil, "version", "-o", "json").out)
}
