package conformance

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
)

const (
	// shownLines is how many lines of a difference a reason gives, and shownColumns how much of each.
	shownLines   = 12
	shownColumns = 160
	// comparedBytes is the largest file whose lines are compared.
	comparedBytes = 256 << 10
)

// firstDifference shows how the lines of the first file differ that has other content: from what content says that it
// shall have to what is in the root. It is empty where there is none, or nothing that can be shown as lines.
func (b *bench) firstDifference(want, got tree, content func(name string) ([]byte, error)) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w, g := want[name], got[name]; !w.mode.IsRegular() || !g.mode.IsRegular() || w.content == g.content {
			continue
		}
		is, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		if err != nil {
			return "" // it only adds to what is said already
		}
		shall, err := content(name)
		if err != nil || !isText(is) || !isText(shall) {
			return ""
		}
		return cut(udiff.Unified("wanted/"+name, "found/"+name, string(shall), string(is)))
	}
	return ""
}

func isText(data []byte) bool {
	return len(data) <= comparedBytes && utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// cut is the beginning of a text of lines, as a reason shows it; empty for none.
func cut(text string) string {
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
