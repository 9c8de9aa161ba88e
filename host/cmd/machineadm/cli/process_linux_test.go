package cli

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/internal/require"
)

// nobody is the ID of an unprivileged user.
const nobody = 65534

// asNobody makes c run as that user, if this is root.
func asNobody(c *exec.Cmd) *exec.Cmd {
	if os.Geteuid() == 0 {
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody, NoSetGroups: false}}
	}
	return c
}

// everyones is a directory that everybody can enter, with copies of these files.
func everyones(t *testing.T, files ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cli-") //nolint:usetesting // others cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.Base(file))
		if err := os.WriteFile(to, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(to, 0o755); err != nil { //nolint:gosec // whatever the umask
			t.Fatal(err)
		}
	}
	return dir
}

func output(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{code: c.ProcessState.ExitCode(), out: out.String(), errOut: errOut.String()}
}

const sysctlDoc = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: a}\nspec: {parameters: {net.core.somaxconn: 4096}}\n"

// TestValidateAndPlanNeedNoPrivileges: no home, no TMPDIR that works, nothing to write but a directory for a socket.
func TestValidateAndPlanNeedNoPrivileges(t *testing.T) {
	dir := everyones(t, filepath.Join(built, hostBinary), filepath.Join(built, sysctlBinary))
	stream := filepath.Join(dir, "stream.yaml")
	bad := filepath.Join(dir, "bad.yaml")
	for path, text := range map[string]string{stream: sysctlDoc, bad: strings.Replace(sysctlDoc, "parameters", "parameter", 1)} {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil { //nolint:gosec // read by everyone
			t.Fatal(err)
		}
	}
	if err := os.Chmod(stream, 0o644); err != nil { //nolint:gosec // whatever the umask
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		exit []int
		says string
	}{
		{[]string{"validate", "--path", stream}, []int{report.ExitOK}, "1 document: no configuration errors"},
		{[]string{"validate", "--path", bad}, []int{report.ExitUsage}, "bad.yaml:4:8: Sysctl/a: spec.parameter: "},
		{[]string{"plan", "--path", stream}, []int{report.ExitOK, report.ExitDiffers}, "1 document: "},
		{[]string{"plugins", "inspect"}, []int{report.ExitOK}, "Sysctl of machineadm.cluster.x-k8s.io/v1alpha1 (preparation)"},
	} {
		c := asNobody(exec.Command(filepath.Join(dir, hostBinary), append([]string{"--plugin-dir", dir}, tt.args...)...))
		c.Env = []string{"HOME=/nonexistent", "TMPDIR=/nonexistent"}
		c.Dir = "/"
		got := output(t, c)
		if !slices.Contains(tt.exit, got.code) || !strings.Contains(got.out+got.errOut, tt.says) {
			t.Errorf("%q: want exit %d and %q; got %s", tt.args, tt.exit, tt.says, got)
		}
	}
}

// TestAsNobody runs the tests that concern files and trust once more, as a user without privileges. To the others the user makes no
// difference, and they take most of the time of this package.
func TestAsNobody(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("this is such a user")
	}
	if testing.Short() {
		t.Skip("the tests of files again")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test := filepath.Join(everyones(t, self), filepath.Base(self)) // not beside plugins, which it would find
	dir := everyones(t, filepath.Join(built, hostBinary), filepath.Join(built, noopBinary), filepath.Join(built, sysctlBinary))
	c := asNobody(exec.Command(test, "-test.timeout=5m", "-test.run=^("+strings.Join(testsOfFiles(t), "|")+")$"))
	c.Dir = dir
	c.Env = []string{"HOME=/nonexistent", "PATH=/usr/bin:/bin", binariesVariable + "=" + dir} // without CI: what needs root is skipped
	if got := output(t, c); got.code != 0 {
		t.Errorf("%s", got)
	}
}

// testsOfFiles returns the tests of this package that use the file system directly, beyond reading and writing their input, and those
// of trust_linux_test.go. The calls in its body select a test, so that no list has to name a new one.
func testsOfFiles(t *testing.T) []string {
	t.Helper()
	function := regexp.MustCompile(`(?ms)^func (Test\w+)\(t \*testing\.T\) \{$.*?^\}$`)
	calls := regexp.MustCompile(`os\.(Chmod|Chown|Lchown|Link|Lstat|Mkdir\w*|ReadDir|Remove\w*|Rename|Stat|Symlink)\(|Umask\(|asNobody\(`)
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	var tests []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range function.FindAllSubmatch(source, -1) {
			if name := string(match[1]); name != t.Name() && (file == "trust_linux_test.go" || calls.Match(match[0])) {
				tests = append(tests, name)
			}
		}
	}
	if !slices.Contains(tests, "TestSecretsThatOthersCanRead") {
		t.Fatalf("the tests of files are %q", tests)
	}
	return tests
}

// TestClosedStandardOutput: a closed reader does not stop the run.
func TestClosedStandardOutput(t *testing.T) {
	for _, format := range []string{"text", "json"} {
		b := newBench(t)
		b.noop("{}")
		read, written, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.Command(filepath.Join(built, hostBinary), b.flags("apply", "--root", b.root, "--output", format,
			"--path", b.stream(noopDoc("a", "touch: [a, b], apply: events")+noopDoc("b", "touch: [c]")))...)
		c.Stdout, c.Stderr = written, written
		if err := read.Close(); err != nil {
			t.Fatal(err)
		}
		if err := c.Run(); err != nil {
			t.Errorf("%s: %v", format, err)
		}
		if err := written.Close(); err != nil {
			t.Fatal(err)
		}
		if !exists(t, filepath.Join(b.root, "a")) || !exists(t, filepath.Join(b.root, "c")) || b.report().Outcome != report.RunSucceeded {
			t.Errorf("%s: the run was stopped: %+v", format, b.report())
		}
	}
}

// TestBootstrap is the line of the proposal's cloud-init template, as far as it goes without being root on a node.
func TestBootstrap(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	got := b.run("--bootstrap", "--path", b.stream(noopDoc("a", "plan: precondition")))
	if got.code != report.ExitPrecondition || b.report().Phase != "all" || !strings.Contains(got.errOut, "Noop/a: noop says precondition") {
		t.Errorf("%s", got)
	}
}

func TestCompletion(t *testing.T) {
	for shell, check := range map[string][]string{"bash": {"-n"}, "zsh": {"-n"}, "fish": {"--no-execute"}, "powershell": nil} {
		t.Run(shell, func(t *testing.T) {
			got := execute(t, nil, "completion", shell)
			if got.code != report.ExitOK || got.errOut != "" || len(got.out) < 1000 || !strings.Contains(got.out, "machineadm") {
				t.Fatalf("%s", got)
			}
			if check == nil {
				return
			}
			path := require.Tool(t, shell)
			script := filepath.Join(t.TempDir(), "completion")
			write(t, script, got.out)
			if out, err := exec.Command(path, append(check, script)...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	if got := execute(t, nil, "completion", "tcsh"); got.code != report.ExitUsage || !strings.Contains(got.errOut, `no command "tcsh"`) {
		t.Errorf("%s", got)
	}
	got := execute(t, nil, "__complete", "apply", "--ph")
	if got.code != report.ExitOK || !strings.Contains(got.out, "--phase") {
		t.Errorf("%s", got)
	}
}
