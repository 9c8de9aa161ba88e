package outside

import (
	"bytes"
	"errors"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/require"
)

// block is a fenced block of a page: ```language file.
type block struct{ language, file, text string }

// part is in place of a file's name where a block shows a part of partsFile, which is compiled and run.
const (
	part      = "part"
	partsFile = "sdk/example_parts_test.go"
)

// tutorial reads the blocks of the page, in order.
func tutorial(t *testing.T) []block {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "writing-a-plugin.md"))
	if err != nil {
		t.Fatal(err)
	}
	const fence = "```"
	var blocks []block
	inside := false
	for line := range strings.Lines(string(page)) {
		switch info, isFence := strings.CutPrefix(line, fence); {
		case isFence && inside:
			inside = false
		case isFence:
			inside = true
			language, file, _ := strings.Cut(strings.TrimSpace(info), " ")
			blocks = append(blocks, block{language: language, file: file})
		case inside:
			blocks[len(blocks)-1].text += line
		}
	}
	return blocks
}

// TestTutorialShowsTheFiles: a block with a file name is that file of the module, every Go file is shown, and what is no
// file is a console.
func TestTutorialShowsTheFiles(t *testing.T) {
	t.Parallel()
	var shown []string
	for _, b := range tutorial(t) {
		if b.file == "" {
			if b.language != "console" {
				t.Errorf("a block of %q has no file name:\n%s", b.language, b.text)
			}
			continue
		}
		if b.file == part {
			checkPart(t, b.text)
			continue
		}
		shown = append(shown, b.file)
		want, err := os.ReadFile(filepath.Join("motd", filepath.FromSlash(b.file)))
		if err != nil {
			t.Error(err)
		} else if b.text != string(want) {
			t.Errorf("%s is shown as\n%s\nand is\n%s", b.file, b.text, want)
		}
	}
	for _, file := range filesBelow(t, "motd") {
		if strings.HasSuffix(file, ".go") && !slices.Contains(shown, file) {
			t.Errorf("%s is not shown", file)
		}
	}
}

// TestTutorial does what the page says, in an empty directory, and arrives at the module that is kept here.
func TestTutorial(t *testing.T) {
	t.Parallel()
	require.Linux(t)
	bash := require.Tool(t, "bash")
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	commands := 0
	for _, b := range tutorial(t) {
		if b.file == part {
			continue
		}
		if b.file != "" {
			write(t, filepath.Join(dir, filepath.FromSlash(b.file)), b.text)
			continue
		}
		for _, step := range strings.Split("\n"+b.text, "\n$ ")[1:] {
			line, want, _ := strings.Cut(step, "\n")
			got := console(t, bash, dir, checkout, line)
			if want = strings.TrimSpace(want); want != "" && strings.TrimSpace(got) != want {
				t.Errorf("$ %s\nsays\n%s\nthe page says\n%s", line, got, want)
			}
			commands++
		}
	}
	if commands < 5 {
		t.Errorf("the page has %d commands: nothing was tried", commands)
	}
	sameModule(t, dir, checkout)
}

// checkPart requires that a part is in partsFile as it is shown, and that a reader has all of it: its imports, each of which it needs, and what it calls.
func checkPart(t *testing.T, text string) {
	t.Helper()
	_, code, _ := strings.Cut(text, ")\n\n")
	if !strings.Contains(read(t, filepath.Join(root, partsFile)), code) {
		t.Errorf("this is no part of %s:\n%s", partsFile, code)
	}
	file, err := parser.ParseFile(token.NewFileSet(), "part.go", "package part\n"+text, 0)
	if err != nil {
		t.Fatalf("%v:\n%s", err, text)
	}
	imported := map[string]bool{}
	for _, spec := range file.Imports {
		imported[path.Base(strings.Trim(spec.Path.Value, `"`))] = false
	}
	for _, name := range file.Unresolved {
		if _, ok := imported[name.Name]; !ok && types.Universe.Lookup(name.Name) == nil {
			t.Errorf("%s is not shown in\n%s", name.Name, text)
		}
		imported[name.Name] = true
	}
	for name, used := range imported {
		if !used {
			t.Errorf("%s is imported and not used in\n%s", name, text)
		}
	}
}

// TestTutorialShowsTheControlGroup: the command for root that starts a daemon of OpenRC is the one of the provider for OpenNTPD, which a machine with OpenRC runs.
func TestTutorialShowsTheControlGroup(t *testing.T) {
	t.Parallel()
	constant := regexp.MustCompile("inOwnGroup = `(.*)`").FindStringSubmatch(read(t, filepath.Join(root, "testenv", "foreign", "openntpd", "openrc.go")))
	if constant == nil {
		t.Fatal("the provider has no such command")
	}
	want := strings.NewReplacer(`"$1"`, "/sys/fs/cgroup/openrc.ntpd", `"$1/`, "/sys/fs/cgroup/openrc.ntpd/", `"$2"`, "ntpd", `"$3"`, "restart", `procs"`, "procs").Replace(constant[1])
	var shown []string
	for _, b := range tutorial(t) {
		for line := range strings.Lines(b.text) {
			if command, ok := strings.CutPrefix(line, "# "); ok && b.language == "console" {
				shown = append(shown, strings.TrimSpace(command))
			}
		}
	}
	if !slices.Equal(shown, []string{want}) {
		t.Errorf("commands for root %q, want %q", shown, want)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)                                    //nolint:gosec // sources
	if err = errors.Join(err, os.WriteFile(path, []byte(text), 0o644)); err != nil { //nolint:gosec // sources
		t.Fatal(err)
	}
}

// planned is the exit code of a plan that has something to do.
const planned = 10

// console runs one line and returns its standard output.
func console(t *testing.T, bash, dir, checkout, line string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), bash, "-c", line)
	c.Dir, c.Env = dir, append(os.Environ(), offline("MACHINEADM="+checkout)...)
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if err != nil && (!strings.Contains(line, " plan ") || c.ProcessState.ExitCode() != planned) {
		t.Fatalf("$ %s: %v\n%s%s", line, err, &stdout, &stderr)
	}
	return stdout.String()
}

// sameModule: what the page's commands made of go.mod is what is kept, but for where the checkout is and for the line
// of the Go version, which is the toolchain's.
func sameModule(t *testing.T, dir, checkout string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("motd", "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go .*$`)
	got = bytes.ReplaceAll(version.ReplaceAll(got, nil), []byte("=> "+checkout), []byte("=> ../../.."))
	if want = version.ReplaceAll(want, nil); !bytes.Equal(got, want) {
		t.Errorf("go.mod\n%s\nwant\n%s", got, want)
	}
}
