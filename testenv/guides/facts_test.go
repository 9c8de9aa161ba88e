package guides

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/launch"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/cmd/machineadm/cli"
	"github.com/machineadm/machineadm/host/run"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestCommandsAndFlagsAreThere: every machineadm command line of a guide is one that the program accepts, and every
// flag that is named is some command's.
func TestCommandsAndFlagsAreThere(t *testing.T) {
	t.Parallel()
	tree := cli.NewRoot(nil, io.Discard, io.Discard)
	lines, flags := 0, 0
	for _, page := range guides() {
		text := read(t, page)
		for _, line := range commandLines(text) {
			lines++
			if problem := refuse(tree, line); problem != "" {
				t.Errorf("%s: %q: %s", page, line, problem)
			}
		}
		for _, flag := range regexp.MustCompile("`--([a-z-]+)").FindAllStringSubmatch(text, -1) {
			if flags++; !anyHas(tree, flag[1]) {
				t.Errorf("%s: no command has the flag --%s", page, flag[1])
			}
		}
	}
	if lines < 30 || flags < 10 {
		t.Errorf("%d command lines and %d flags are found: little was checked", lines, flags)
	}
}

// commandLines are the command lines of machineadm in the blocks and in the running text of a page.
func commandLines(page string) []string {
	var out []string
	typed := regexp.MustCompile(`(?m)^ *(?:[$#-] |ExecStart=)(?:/usr/bin/)?machineadm (.*)$`)
	for _, b := range blocks(page) {
		for _, found := range typed.FindAllStringSubmatch(b.text, -1) {
			line, _, _ := strings.Cut(found[1], " || ")
			out = append(out, line)
		}
	}
	for _, span := range regexp.MustCompile("`(?:/usr/bin/)?machineadm ([^`\n]+)`").FindAllStringSubmatch(withoutBlocks(page), -1) {
		out = append(out, span[1])
	}
	return out
}

// refuse returns what is wrong with a command line.
func refuse(tree *cobra.Command, line string) string {
	words := strings.Fields(line)
	command, rest, err := tree.Find(words)
	if err != nil {
		return err.Error()
	}
	if command == tree && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return rest[0] + " is no command"
	}
	for _, word := range rest {
		name, isLong := strings.CutPrefix(word, "--")
		short, isShort := strings.CutPrefix(word, "-")
		name, _, _ = strings.Cut(name, "=")
		switch {
		case isLong && name != "help" && command.Flag(name) == nil && command.InheritedFlags().Lookup(name) == nil:
			return "has no flag " + word
		case !isLong && isShort && len(short) == 1 && command.Flags().ShorthandLookup(short) == nil:
			return "has no flag " + word
		}
	}
	return ""
}

func anyHas(c *cobra.Command, flag string) bool {
	if flag == "version" || c.Flag(flag) != nil || c.PersistentFlags().Lookup(flag) != nil {
		return true
	}
	return slices.ContainsFunc(c.Commands(), func(sub *cobra.Command) bool { return anyHas(sub, flag) })
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	tree := cli.NewRoot(nil, io.Discard, io.Discard)
	for line, wrong := range map[string]bool{
		"apply --path node.yaml --timeout 1m": false, "status -o json": false, "--bootstrap --path FILE": false,
		"plugins inspect NAME": false, "apply --pathh node.yaml": true, "status --path x": true, "aply": true, "status -x": true,
	} {
		if got := refuse(tree, line); (got != "") != wrong {
			t.Errorf("%s: %q, want a refusal: %t", line, got, wrong)
		}
	}
}

// TestPathsAreThere: every path and file name of machineadm in a guide is in the code.
func TestPathsAreThere(t *testing.T) {
	t.Parallel()
	words := literals(t)
	known := func(text string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, text) })
	}
	// Made up by the guides, or the machine's own.
	others := []string{
		"/etc/machineadm/node.yaml", "/etc/systemd/system/machineadm.service", "/etc/sysctl.d/99-machineadm-node.conf",
		"node.yaml", "examples/node.yaml", "config.yaml", "docs/decisions", "goss.yaml", "goss-machineadm.yaml",
		"/usr/share/machineadm/schema", "document.json", // TestInstall
	}
	span := regexp.MustCompile("`([^`\n]*)`")
	ours := regexp.MustCompile(`^(/(run|var|etc|usr|opt)/[\w./-]*(machineadm|cluster-api)[\w./-]*|C:\\[\w\\ .-]+|[\w-]+\.(json|yaml|key|service))$`)
	checked := 0
	for _, page := range guides() {
		for _, found := range span.FindAllStringSubmatch(withoutBlocks(read(t, page)), -1) {
			name := strings.TrimSuffix(found[1], "/")
			if !ours.MatchString(name) || slices.Contains(others, name) {
				continue
			}
			checked++
			if !known(name) && (!strings.HasPrefix(name, "/") || !known(path.Dir(name)) || !known(path.Base(name))) {
				t.Errorf("%s: the code does not contain %s", page, name)
			}
		}
	}
	if checked < 25 {
		t.Errorf("%d paths are found: little was checked", checked)
	}
}

// literals are the strings in the source of the product.
func literals(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, top := range []string{"contract", "host", "internal", "sdk", "plugins"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			if strings.Contains(filepath.ToSlash(path), "/mangen/") { // its pages are documentation too
				return nil
			}
			tree, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(tree, func(n ast.Node) bool {
				if literal, ok := n.(*ast.BasicLit); ok && literal.Kind == token.STRING {
					if text, err := strconv.Unquote(literal.Value); err == nil {
						out = append(out, text)
					}
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// TestLimitsAreThoseOfTheCode: the page has the values of the constants.
func TestLimitsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	retry := run.DefaultRetry()
	minutes := func(d interface{ Minutes() float64 }) string { return fmt.Sprintf("%.0f min", d.Minutes()) }
	seconds := func(d interface{ Seconds() float64 }) string { return fmt.Sprintf("%.0f s", d.Seconds()) }
	page := read(t, "docs/limits.md")
	for _, want := range []string{
		fmt.Sprintf("%d MiB, 10,000 documents", document.MaxStreamBytes>>20),
		fmt.Sprintf("%d levels", document.MaxDepth),
		fmt.Sprintf("%d of a document, 1,000 of a stream", document.MaxErrors),
		fmt.Sprintf("| a message between host and plugin | %d MiB |", pluginv1.MaxMessageBytes>>20),
		fmt.Sprintf("| a file that a plugin of the SDK reads | %d MiB |", machine.MaxFileBytes>>20),
		"its description | " + seconds(launch.DefaultTimeout) + " each",
		"all sources of a stream before the first planning | " + seconds(run.PlanTimeout) + " together",
		"planning a document | " + seconds(run.PlanTimeout),
		"applying a document | " + minutes(run.ApplyTimeout),
		"pauses of " + seconds(retry.First) + " to " + seconds(retry.Most) + ", " + minutes(retry.Total) + " in all",
		"a run | " + minutes(run.RunTimeout),
		"an interrupted change | " + seconds(run.StopGrace),
		fmt.Sprintf("reboots of one stream | %d", run.MaxReboots),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("docs/limits.md does not say %q", want)
		}
	}
	if document.MaxDocuments != 10_000 || document.MaxStructure != 200_000 || document.MaxKeyBytes != 1024 {
		t.Error("docs/limits.md says 10,000 documents, 200,000 characters of structure and keys of 1,024 bytes")
	}
}

// TestExitCodesAreExplained: every page with a table of them has each once, in order.
func TestExitCodesAreExplained(t *testing.T) {
	t.Parallel()
	source := read(t, "contract/report/report.go")
	var want []string
	for _, found := range regexp.MustCompile(`(?m)^\tExit\w+ += (\d+)`).FindAllStringSubmatch(source, -1) {
		want = append(want, found[1])
	}
	if len(want) < 11 {
		t.Fatalf("%d codes are in the source", len(want))
	}
	for _, page := range []string{"docs/operations.md", "docs/reference/cli.md", "contract/SPEC.md"} {
		_, table, _ := strings.Cut(read(t, page), "# Exit codes\n")
		table, _, _ = strings.Cut(table, "\n#")
		var got []string
		for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \|`).FindAllStringSubmatch(table, -1) {
			got = append(got, row[1])
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s explains %v, the codes are %v", page, got, want)
		}
	}
}

// TestErrorCodesAreExplained: each code that a report can have is in the table of the troubleshooting page, with the exit code
// of the table that maps them.
func TestErrorCodesAreExplained(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "docs/troubleshooting.md"), "## By error code")
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (\\d+)").FindAllStringSubmatch(table, -1) {
		got[row[1]] = row[2]
	}
	want := map[string]string{}
	codes := []string{"InvalidConfig", "Unsupported", "Precondition", "Retry", "Internal"} // of a plugin
	for _, found := range regexp.MustCompile(`(?m)^\tCode\w+ += "(\w+)"`).FindAllStringSubmatch(read(t, "contract/report/report.go"), -1) {
		codes = append(codes, found[1])
	}
	if len(codes) < 16 {
		t.Fatalf("only %d codes are in the source", len(codes))
	}
	for _, code := range codes {
		want[code] = strconv.Itoa(report.ExitCode(code))
	}
	if !maps.Equal(got, want) {
		t.Errorf("docs/troubleshooting.md explains %v, the codes are %v", got, want)
	}
}

// TestSymptomsAreThoseOfTheCode: what a page says that one sees is what the code says, in at most three pieces.
func TestSymptomsAreThoseOfTheCode(t *testing.T) {
	t.Parallel()
	others := []string{"has a bad unit file setting"} // of systemd
	source := strings.Join(literals(t), "\n")
	checked := 0
	for _, page := range tasks() {
		for _, row := range regexp.MustCompile(`(?m)^\| ([^|\n]+) \|`).FindAllStringSubmatch(withoutBlocks(read(t, page)), -1) {
			for _, span := range regexp.MustCompile("`([a-zA-Z][^`\n]* [^`\n]*)`").FindAllStringSubmatch(row[1], -1) {
				// What differs from case to case: KIND, DIR, NAME$.
				for _, part := range regexp.MustCompile(`\.\.\.|\b[A-Z]{3,}\$?`).Split(span[1], -1) {
					if strings.HasPrefix(part, "machineadm ") || strings.Contains(part, "{") || slices.Contains(others, strings.TrimSpace(part)) {
						continue
					}
					checked++
					assert.True(t, isSaid(source, strings.Fields(part)), "%s: the code does not say %q", page, part)
				}
			}
		}
	}
	assert.Greater(t, checked, 20)
}

// isSaid reports whether at most three texts of the source have the words.
func isSaid(source string, words []string) bool {
	for range 3 {
		n := len(words)
		for n > 0 && !strings.Contains(source, strings.Trim(strings.Join(words[:n], " "), ":,")) {
			n--
		}
		words = words[n:]
	}
	return len(words) == 0
}

func TestIsSaid(t *testing.T) {
	t.Parallel()
	source := "kubeadm\njoin\nfailed in the phase %s\nthe clock is right"
	for text, want := range map[string]bool{
		"kubeadm join failed in the phase": true, "the clock is right:": true, "": true, "the clock is wrong": false, "kubeadm join failed at the phase": false,
	} {
		assert.Equal(t, want, isSaid(source, strings.Fields(text)), text)
	}
}
