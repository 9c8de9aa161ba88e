package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	testify "github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/machine"
	"github.com/machineadm/machineadm/host/session"
	"github.com/machineadm/machineadm/internal/require"
)

const stranger = 1234

// TestDirectoriesOfOthers covers what is written below a directory that another user can change or replace.
func TestDirectoriesOfOthers(t *testing.T) {
	require.Root(t)
	for name, test := range map[string]struct {
		flag, path string
		mode       os.FileMode
		owner      int
		exit       int
	}{
		"an image below a directory of root":        {flag: "--root", path: "d/image", mode: 0o755, exit: report.ExitOK},
		"an image below another user's directory":   {flag: "--root", path: "d/image", mode: 0o755, owner: stranger, exit: report.ExitUntrusted},
		"an image below a directory of everyone":    {flag: "--root", path: "d/image", mode: 0o777, exit: report.ExitUntrusted},
		"an image below a sticky directory":         {flag: "--root", path: "d/image", mode: 0o777 | os.ModeSticky, exit: report.ExitOK},
		"an image of another user":                  {flag: "--root", path: "d", mode: 0o755, owner: stranger, exit: report.ExitUntrusted},
		"an image that everyone can write":          {flag: "--root", path: "d", mode: 0o777 | os.ModeSticky, exit: report.ExitUntrusted},
		"a run directory of another user":           {flag: "--run-dir", path: "d", mode: 0o755, owner: stranger, exit: report.ExitUntrusted},
		"a run directory that its group can write":  {flag: "--run-dir", path: "d", mode: 0o775, exit: report.ExitUntrusted},
		"a run directory to be made in another's":   {flag: "--run-dir", path: "d/new/run", mode: 0o755, owner: stranger, exit: report.ExitUntrusted},
		"a run directory to be made in a sticky":    {flag: "--run-dir", path: "d/new/run", mode: 0o777 | os.ModeSticky, exit: report.ExitOK},
		"a state directory of another user":         {flag: "--state-dir", path: "d", mode: 0o700, owner: stranger, exit: report.ExitUntrusted},
		"a state directory to be made in another's": {flag: "--state-dir", path: "d/state", mode: 0o755, owner: stranger, exit: report.ExitUntrusted},
		"a state directory that everyone can write": {flag: "--state-dir", path: "d", mode: 0o777, exit: report.ExitUntrusted},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop("{}")
			d := filepath.Join(b.dir, "d")
			testify.NoError(t, os.MkdirAll(filepath.Join(d, "image"), 0o755))
			testify.NoError(t, os.Chown(d, test.owner, test.owner))
			testify.NoError(t, os.Chmod(d, test.mode))
			path := filepath.Join(b.dir, test.path)
			before := listing(t, d)
			for _, command := range []string{"plan", "apply"} {
				args := []string{command, "--root", b.root, "--path", b.stream(noopDoc("a", "touch: [a]")), "-o", "json", test.flag, path}
				got := b.run(args...)
				if test.exit == report.ExitOK {
					assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.code, got.String())
					continue
				}
				assert.Equal(t, test.exit, got.code, got.String())
				assert.Contains(t, got.errOut, "error: "+test.flag+": "+d+" ")
				assert.Contains(t, got.errOut, "hint: use a directory that only root can write")
				assert.NotContains(t, got.errOut, "chown")
				assert.Contains(t, got.out, `"code":"Untrusted"`)
				assert.Equal(t, before, listing(t, d), "something was written")
			}
		})
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "find", dir).Output()
	testify.NoError(t, err)
	return string(out)
}

// TestRootIsTheCheckedPath gives plugins the path that was checked, not a link that can change meanwhile.
func TestRootIsTheCheckedPath(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	link := filepath.Join(b.dir, "link")
	testify.NoError(t, os.Symlink("root", link))
	got := b.run("apply", "--root", link, "--path", b.stream(noopDoc("a", "touch: [a]")))
	testify.Equal(t, report.ExitOK, got.code, got.String())
	assert.Equal(t, b.root, b.report().Root)
}

// TestTemporaryDirectoryOfOthers: sockets of plugins lie there, through which secrets pass.
func TestTemporaryDirectoryOfOthers(t *testing.T) {
	require.Root(t)
	b := newBench(t)
	b.noop("{}")
	others := filepath.Join(b.dir, "others")
	testify.NoError(t, os.Mkdir(others, 0o700))
	testify.NoError(t, os.Chown(others, stranger, stranger))
	t.Setenv("TMPDIR", others)
	stream := b.stream(noopDoc("a", "touch: [a]"))
	for _, args := range [][]string{{"validate"}, {"plan", "--root", b.root}, {"apply", "--root", b.root}} {
		got := b.run(append(args, "--path", stream)...)
		assert.Contains(t, []int{report.ExitOK, report.ExitDiffers}, got.code, got.String())
		assert.Contains(t, got.errOut, "is untrusted and not used: "+others+" belongs to user 1234")
		assert.Equal(t, others+"\n", listing(t, others))
	}
}

// TestHintsAreWordsOfAShell quotes paths with blanks.
func TestHintsAreWordsOfAShell(t *testing.T) {
	t.Parallel()
	text := session.ResumeHint("/var/my state", machine.RunDir(), nil)
	assert.True(t, strings.HasSuffix(text, "--resume --state-dir '/var/my state'"), text)
}

// TestStatusOfARunWithoutRoom: the report of the earlier run, which succeeded, is not the report of the last.
func TestStatusOfARunWithoutRoom(t *testing.T) {
	require.Root(t)
	runtime.LockOSThread() // never unlocked: the thread has mounts of its own, and ends with the test
	testify.NoError(t, unix.Unshare(unix.CLONE_NEWNS))
	testify.NoError(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	b := newBench(t)
	b.noop("{}")
	testify.NoError(t, os.Mkdir(b.runs, 0o755))
	testify.NoError(t, unix.Mount("tmpfs", b.runs, "tmpfs", 0, "size=64k,mode=0755"))
	t.Cleanup(func() { assert.NoError(t, unix.Unmount(b.runs, unix.MNT_DETACH)) })
	stream := noopDoc("a", "touch: [a]")
	ballast := filepath.Join(b.runs, "ballast")
	full := func() {
		t.Helper()
		testify.Equal(t, report.ExitOK, b.apply(stream).code)
		testify.ErrorIs(t, os.WriteFile(ballast, make([]byte, 1<<20), 0o600), unix.ENOSPC)
		got := b.apply(stream)
		testify.Equal(t, report.ExitState, got.code, got.String())
	}
	full() // the state directory has room, and its copy of the report says what happened
	got := b.run("status")
	assert.Equal(t, report.ExitOK, got.code)
	assert.Contains(t, got.out, "no space left on device")
	assert.Contains(t, got.out, "exit code: 9")

	testify.NoError(t, os.Remove(ballast))
	b.state = filepath.Join(b.runs, "state")
	full()
	for _, output := range []string{"text", "json"} {
		got = b.run("status", "-o", output)
		assert.Equal(t, report.ExitFailed, got.code)
		assert.Empty(t, got.out)
		assert.Contains(t, got.errOut, "the last run has left no report in "+b.runs)
		assert.Contains(t, got.errOut, "hint: free space in "+b.runs)
	}
	testify.NoError(t, os.Remove(ballast))
	testify.Equal(t, report.ExitOK, b.apply(stream).code)
	got = b.run("status")
	assert.True(t, strings.HasPrefix(got.out, "Succeeded"), got.String())
}

// TestWordsOfAPluginAreEscaped in everything that programs read, and people look at with cat.
func TestWordsOfAPluginAreEscaped(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	const word = "\u202egnol\u2066\u007f\u0085"
	doc := noopDoc("a", `touch: [a], warn: "\u202Egnol\u2066\x7F\x85", say: "\u202Egnol\u2066\x7F\x85"`)
	got := b.apply(doc, "--output", "json", "--log-format", "json", "--log-level", "debug")
	testify.Equal(t, report.ExitOK, got.code, got.String())
	kept, err := os.ReadFile(filepath.Join(b.runs, "report.json"))
	testify.NoError(t, err)
	testify.Contains(t, b.report().Documents[0].Warnings, word)
	status := b.run("status", "-o", "json")
	for name, text := range map[string]string{
		"the events": got.out, "the log": got.errOut, "report.json": string(kept), "status": status.out,
	} {
		assert.False(t, strings.ContainsAny(text, word[:3]+"\u2066\u007f\u0085"), "%s: %q", name, text)
		assert.Contains(t, text, `gnol`, name)
	}
}

// TestLogOfEachStep: a run on --log-level debug says what it does, and never a value of a document.
func TestLogOfEachStep(t *testing.T) {
	b := newBench(t)
	b.noop("{}")
	write(t, filepath.Join(b.root, "etc/machineadm/defaults.yaml"), "Noop: test\n")
	doc := noopDoc("a", "touch: [c4n4ry-a], content: c4n4ry-b, password: {value: c4n4ry-c}, warn: c4n4ry-d")
	wrong := noopDoc("b", "touch: [c4n4ry-a], plan: invalid, field: spec.touch")
	steps := map[string][]string{
		"debug": {
			"platform detected", "directories chosen", "lock taken", "stream read", "vendor file read", "plugin found and trusted",
			"reason=", "plugin started", "call=Describe", "call=Plan", "call=Apply", "duration=", "report written", "plugin ended",
		},
		"info": {"platform detected", "stream read", "vendor file read", "plugin found and trusted", "plugin started", "call=Plan"},
		"warn": {},
	}
	for _, level := range []string{"debug", "info", "warn"} { // the first changes something
		words := steps[level]
		got := b.apply(doc, "--allow-secrets", "--log-level", level)
		assert.Equal(t, report.ExitOK, got.code, got.String())
		for _, word := range words {
			assert.Contains(t, got.errOut, word, level)
		}
		assert.Equal(t, level == "debug", strings.Contains(got.errOut, "level=DEBUG"))
		if level == "warn" {
			assert.NotContains(t, got.errOut, "level=")
		}
		refused := b.apply(wrong, "--log-level", level, "-o", "json")
		assert.Equal(t, report.ExitUsage, refused.code, refused.String())
		for _, text := range []string{logLines(got.errOut), logLines(refused.errOut)} {
			assert.NotContains(t, text, "c4n4ry")
		}
	}
}

// logLines are the lines of the log: what a run shows besides has warnings of plugins in it.
func logLines(errOut string) string {
	var out strings.Builder
	for line := range strings.Lines(errOut) {
		if strings.HasPrefix(line, "time=") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// TestPluginsBesideTheProgram: a build or an unpacked archive works without --plugin-dir.
func TestPluginsBesideTheProgram(t *testing.T) {
	dir := everyones(t, filepath.Join(built, hostBinary), filepath.Join(built, sysctlBinary))
	link := filepath.Join(t.TempDir(), "machineadm")
	testify.NoError(t, os.Symlink(filepath.Join(dir, hostBinary), link))
	stream := filepath.Join(dir, "stream.yaml")
	testify.NoError(t, os.WriteFile(stream, []byte(sysctlDoc), 0o600))
	for _, program := range []string{filepath.Join(dir, hostBinary), link} {
		got := output(t, exec.CommandContext(t.Context(), program, "validate", "--path", stream))
		assert.Equal(t, report.ExitOK, got.code, got.String())
	}
	own := filepath.Join(t.TempDir(), "own")
	testify.NoError(t, os.Mkdir(own, 0o700))
	data, err := os.ReadFile(filepath.Join(built, sysctlBinary))
	testify.NoError(t, err)
	testify.NoError(t, require.WriteProgram(filepath.Join(own, sysctlBinary), data))
	got := output(t, exec.CommandContext(t.Context(), link, "validate", "--path", stream, "--plugin-dir", own, "--log-level", "info"))
	assert.Equal(t, report.ExitOK, got.code, got.String())
	assert.Contains(t, got.errOut, "path="+own, "--plugin-dir goes first")

	testify.NoError(t, os.Chmod(filepath.Join(dir, sysctlBinary), 0o775))
	got = output(t, exec.CommandContext(t.Context(), link, "validate", "--path", stream))
	assert.Equal(t, report.ExitUntrusted, got.code, got.String())

	testify.NoError(t, os.Remove(filepath.Join(dir, sysctlBinary)))
	got = output(t, exec.CommandContext(t.Context(), link, "validate", "--path", stream))
	assert.Equal(t, report.ExitPrecondition, got.code, got.String())
	assert.Contains(t, got.errOut, "no plugin for Sysctl is installed: there is no file machineadm-sysctl-plugin-PROVIDER in any of /usr/local/libexec/machineadm, ")
	got = output(t, exec.CommandContext(t.Context(), link, "plugins", "list"))
	assert.Contains(t, got.errOut, "no plugin is installed in any of /usr/local/libexec/machineadm, ")
}

// TestStreamInAHome: the hint for a stream that root does not trust has the commands that apply it all the same.
func TestStreamInAHome(t *testing.T) {
	require.Root(t)
	for name, test := range map[string]struct {
		directory, file os.FileMode
		owner           int
		hint            string
	}{
		"of another user":          {0o700, 0o600, stranger, "use a directory that only root can write, below directories that only root can write; or check"},
		"of a umask of 002":        {0o775, 0o664, 0, "if no other user needs to write in DIR: chmod go-w DIR; or check"},
		"a file of a umask of 002": {0o755, 0o664, 0, "chmod go-w DIR/node.yaml; or check"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.noop("{}")
			home := filepath.Join(b.dir, "home")
			testify.NoError(t, os.Mkdir(home, 0o755))
			path := filepath.Join(home, "node.yaml")
			testify.NoError(t, os.WriteFile(path, []byte(noopDoc("a", "touch: [a]")), 0o600))
			for at, mode := range map[string]os.FileMode{path: test.file, home: test.directory} {
				testify.NoError(t, os.Chown(at, test.owner, test.owner))
				testify.NoError(t, os.Chmod(at, mode))
			}
			got := b.run("plan", "--root", b.root, "--path", path)
			assert.Equal(t, report.ExitUntrusted, got.code, got.String())
			assert.Contains(t, got.errOut, strings.ReplaceAll(test.hint, "DIR", home)+" its content, and run the command with --path - < "+path)
		})
	}
}
