package guides

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestGettingStarted runs the page in an empty directory. Lines that begin with # are for root on a machine,
// and are read by TestCommandsAndFlagsAreThere.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	require.Linux(t)
	bash := require.Tool(t, "bash")
	bin := filepath.Join(t.TempDir(), "bin")
	if err := tools.All(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	environment := append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	files, commands := 0, 0
	for _, b := range blocks(read(t, "docs/getting-started.md")) {
		if b.file != "" {
			if err := os.WriteFile(filepath.Join(dir, b.file), []byte(b.text), 0o600); err != nil {
				t.Fatal(err)
			}
			files++
		}
		if b.language != "console" {
			continue
		}
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			c := exec.CommandContext(t.Context(), bash, "-c", line)
			c.Dir, c.Env = dir, environment
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("$ %s: %v\n%s", line, err, out)
			}
			if missing := shows(string(out), want); missing != "" {
				t.Errorf("$ %s\nsays\n%s\nand not, as the page has it, %q", line, out, missing)
			}
			commands++
		}
	}
	if files < 2 || commands < 9 {
		t.Errorf("the page has %d files and %d commands: little was tried", files, commands)
	}
}

// shows searches a command's output for the lines of a page, in their order, and returns the first that is missing.
// A line ... stands for any lines.
func shows(got, want string) (missing string) {
	lines := strings.Split(strings.TrimSpace(changing(got)), "\n")
	anything := false
	for line := range strings.Lines(changing(want)) {
		line = strings.TrimRight(line, "\n")
		if line == "" {
			continue
		}
		if line == "..." {
			anything = true
			continue
		}
		for anything && len(lines) > 0 && !fits(lines[0], line) {
			lines = lines[1:]
		}
		if len(lines) == 0 || !fits(lines[0], line) {
			return line
		}
		lines, anything = lines[1:], false
	}
	if !anything && want != "" && len(lines) > 0 && lines[0] != "" {
		return "an end before " + lines[0]
	}
	return ""
}

// fits: a line of the page may leave out what follows in the line.
func fits(got, want string) bool {
	return got == want || strings.HasPrefix(got, want+" ") && !strings.Contains(want, " ")
}

// changing replaces the parts that differ from run to run.
func changing(text string) string {
	return regexp.MustCompile(`under 1ms|\b\d+(\.\d+)?m?s\b`).ReplaceAllString(text, "TIME")
}

func TestShows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want, missing string }{
		{"one\ntwo\n", "one\ntwo\n", ""},
		{"one\ntwo\nthree\n", "one\n...\nthree\n", ""},
		{"one\ntwo\nthree\n", "...\ntwo\n...\n", ""},
		{"took 3ms\n", "took under 1ms\n", ""},
		{"name  /a/path  trusted\n", "name\n", ""},
		{"one\ntwo\n", "two\n", "two"},
		{"one\ntwo\n", "one\n", "an end before two"},
		{"one\ntwo\n", "...\nthree\n", "three"},
		{"", "one\n", "one"},
		{"two\none\n", "...\none\n...\ntwo\n", "two"},
		{"anything", "", ""},
	} {
		if missing := shows(c.got, c.want); missing != c.missing {
			t.Errorf("%q shows %q: missing %q, want %q", c.got, c.want, missing, c.missing)
		}
	}
}
