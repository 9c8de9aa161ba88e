package guides

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestGettingStarted runs the page in an empty directory. Lines that begin with # are for root on a machine,
// and are read by TestCommandsAndFlagsAreThere.
func TestGettingStarted(t *testing.T) {
	t.Parallel()
	files, commands := follow(t, installed(t), "docs/getting-started.md", func(string) bool { return true })
	if files < 2 || commands < 9 {
		t.Errorf("the page has %d files and %d commands: little was tried", files, commands)
	}
}

// TestTasks runs what a page about a job does with machineadm, and validates each stream that it shows. Commands of a cluster are run by
// the suites that have one.
func TestTasks(t *testing.T) {
	t.Parallel()
	path := installed(t)
	for _, page := range tasks() {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			files, commands := follow(t, path, page, func(line string) bool {
				return strings.HasPrefix(line, "machineadm ") || strings.HasPrefix(line, "gzip ")
			})
			for _, b := range blocks(read(t, page)) {
				if strings.HasPrefix(b.text, "apiVersion: machineadm.") {
					assert.NotEmpty(t, b.file, "a stream without the name of its file is not tried:\n%s", b.text)
				}
			}
			if page != "docs/troubleshooting.md" && page != "docs/baking-images.md" {
				assert.Positive(t, files, "the page has no stream")
				assert.Positive(t, commands, "the page runs nothing")
			}
			assert.Contains(t, read(t, "README.md"), "("+page+")", "the first page leads to each job")
		})
	}
}

// installed builds the programs, and returns a search path that begins with them.
func installed(t *testing.T) string {
	t.Helper()
	require.Linux(t)
	bin := filepath.Join(t.TempDir(), "bin")
	if err := tools.All(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	return bin + string(os.PathListSeparator) + os.Getenv("PATH")
}

// follow writes the files of a page into an empty directory, and runs its commands in order where run permits it.
func follow(t *testing.T, path, page string, run func(line string) bool) (files, commands int) {
	t.Helper()
	bash := require.Tool(t, "bash")
	dir := t.TempDir()
	for _, b := range blocks(read(t, page)) {
		if b.file != "" && !strings.Contains(b.file, "/") { // the other files are examples, see TestClusterAPIShowsItsExamples
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
			if !run(line) {
				continue
			}
			want, _, _ = strings.Cut("\n"+want, "\n# ") // a command for root
			c := exec.CommandContext(t.Context(), bash, "-c", line)
			c.Dir, c.Env = dir, append(os.Environ(), "PATH="+path)
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
	return files, commands
}

// shows searches a command's output for the lines of a page, in their order, and returns the first that is missing.
// A line ... matches any lines.
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
