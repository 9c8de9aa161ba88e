package rig

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
)

const (
	// shownLines and shownColumns limit the difference in a finding.
	shownLines   = 12
	shownColumns = 160
	// comparedBytes is the largest file whose lines are compared.
	comparedBytes = 256 << 10
)

// FirstDifference returns the unified diff of the first file with other content, from the desired one, which content
// returns, to that in the root. It is empty if there is none, or none of text.
func (f *Fixture) FirstDifference(want, got trees.Tree, content func(name string) ([]byte, error)) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w, g := want[name], got[name]; !w.Mode.IsRegular() || !g.Mode.IsRegular() || w.Content == g.Content {
			continue
		}
		found, err := os.ReadFile(filepath.Join(f.Root, filepath.FromSlash(name)))
		if err != nil {
			return "" // the diff only adds to the finding
		}
		desired, err := content(name)
		if err != nil || !isText(found) || !isText(desired) {
			return ""
		}
		return Cut(udiff.Unified("expected/"+name, "found/"+name, string(desired), string(found)))
	}
	return ""
}

func isText(data []byte) bool {
	return len(data) <= comparedBytes && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// Cut returns the beginning of a text of lines, as a finding shows it; empty for an empty text.
func Cut(text string) string {
	if text == "" {
		return ""
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	more := len(lines) - shownLines
	lines = lines[:min(len(lines), shownLines)]
	for i, line := range lines {
		if letters := []rune(line); len(letters) > shownColumns {
			lines[i] = string(letters[:shownColumns]) + "..."
		}
	}
	if more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more lines", more))
	}
	return "\n    " + strings.Join(lines, "\n    ")
}
