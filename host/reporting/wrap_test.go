package reporting

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/report"
)

func TestWrap(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		width, hang int
		text, want  string
	}{
		{0, 4, "one two\n", "one two\n"},
		{7, 4, "one two\n", "one two\n"},
		{6, 4, "one two\n", "one\n    two\n"},
		{9, 2, "  one two three\nfour five", "  one two\n    three\nfour five"},
		{3, 1, "longer words stay whole\n", "longer\n words\n stay\n whole\n"},
		{5, 0, "ééé éé\n", "ééé\néé\n"},
		{80, 4, "a  b\n\n", "a  b\n\n"},
		{80, 4, "", ""},
	} {
		assert.Equal(t, c.want, Wrap(c.text, c.width, c.hang), "%d columns of %q", c.width, c.text)
	}
}

// TestErrorsOnATerminal: each line fits, every word is there, and the hint is a line of its own.
func TestErrorsOnATerminal(t *testing.T) {
	t.Parallel()
	r := &report.Report{Errors: []report.Error{{
		File: "node.yaml", Line: 3, Column: 5, Document: "Sysctl/a", Field: "spec.parameters", Message: strings.Repeat("word ", 40), Hint: strings.Repeat("hint ", 40),
	}}}
	var whole, wrapped strings.Builder
	Errors(&whole, r, 0)
	Errors(&wrapped, r, 60)
	assert.Equal(t, 2, strings.Count(whole.String(), "\n"))
	assert.Equal(t, strings.Fields(whole.String()), strings.Fields(wrapped.String()))
	assert.Contains(t, wrapped.String(), "\n  hint: hint ")
	for line := range strings.Lines(wrapped.String()) {
		assert.LessOrEqual(t, len(strings.TrimRight(line, " \n")), 60)
	}
	assert.Equal(t, "error: one two\n    three\n  hint: four\n", Failure("one two three", "four", 14))
	assert.Equal(t, "error: one\\x1b two\n", Failure("one\x1b two", "", 0))
}
