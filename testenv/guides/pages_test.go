// Package guides checks the documentation against the program: it runs what a page shows, and finds what a page names.
package guides

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// guides are the pages with commands and paths, relative to the root.
func guides() []string {
	return append(tasks(), "README.md", "docs/README.md", "docs/getting-started.md", "docs/operations.md", "docs/limits.md")
}

// tasks are the pages that lead through one job each. README.md lists them.
func tasks() []string {
	return []string{
		"docs/ubuntu-worker.md", "docs/baking-images.md", "docs/existing-clusters.md", "docs/air-gap.md", "docs/windows-domain.md", "docs/troubleshooting.md",
	}
}

func read(t *testing.T, page string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(page)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// block is a fenced block of a page: ```language file.
type block struct{ language, file, text string }

func blocks(page string) []block {
	var out []block
	inside := false
	for line := range strings.Lines(page) {
		switch info, isFence := strings.CutPrefix(line, "```"); {
		case isFence && inside:
			inside = false
		case isFence:
			inside = true
			language, file, _ := strings.Cut(strings.TrimSpace(info), " ")
			out = append(out, block{language: language, file: file})
		case inside:
			out[len(out)-1].text += line
		}
	}
	return out
}

// withoutBlocks is the running text of a page.
func withoutBlocks(page string) string {
	return regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(page, "")
}

// pages are all pages of the checkout that belong to people.
func pages(t *testing.T) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if entry.IsDir() && (slices.Contains([]string{".git", "bin", "dist"}, below) || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".md") {
			out = append(out, filepath.ToSlash(below))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLinksLeadSomewhere: to a file or a directory of the checkout and, where a link says so, to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	links := 0
	for _, page := range pages(t) {
		text := regexp.MustCompile("`[^`\n]*`").ReplaceAllString(withoutBlocks(read(t, page)), "code")
		for _, found := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(found[1], "://") || strings.HasPrefix(found[1], "mailto:") {
				continue
			}
			links++
			file, heading, _ := strings.Cut(found[1], "#")
			at := page
			if file != "" {
				at = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			if _, err := os.Stat(filepath.Join(root, at)); err != nil || strings.HasPrefix(at, "..") {
				t.Errorf("%s: the link %s leads nowhere", page, found[1])
			} else if heading != "" && !slices.Contains(anchors(read(t, at)), heading) {
				t.Errorf("%s: the link %s leads to no heading", page, found[1])
			}
		}
	}
	if links < 40 {
		t.Errorf("%d links are found: nothing was checked", links)
	}
}

// anchors are the names of the headings of a page, as GitHub makes them.
func anchors(page string) []string {
	var out []string
	for _, heading := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(withoutBlocks(page), -1) {
		name := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(heading[1]), "")
		out = append(out, strings.ReplaceAll(name, " ", "-"))
	}
	return out
}
