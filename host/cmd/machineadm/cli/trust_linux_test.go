package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	testify "github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
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
				assert.Contains(t, got.errOut, "hint: use another directory, one that only root can write")
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
		assert.Contains(t, got.errOut, "is not trusted and not used: "+others+" belongs to user 1234")
		assert.Equal(t, others+"\n", listing(t, others))
	}
}

// TestHintsAreWordsOfAShell quotes paths with blanks.
func TestHintsAreWordsOfAShell(t *testing.T) {
	t.Parallel()
	g := globals{logLevel: defaultLogLevel, logFormat: defaultLogFormat}
	text := g.toGoOn("/var/my state", defaultRunDir())
	assert.True(t, strings.HasSuffix(text, "--resume --state-dir '/var/my state'"), text)
}
