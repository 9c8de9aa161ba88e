package reporting

import (
	"strings"
	"testing"
)

func TestCells(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                     0,
		"plain":                5,
		"ümläut":               6,
		"e\u0301toile":         6, // a letter and its accent
		"漢字":                   4,
		"ｆｕｌｌ":                 8,
		"ﾊﾝｶｸ":                 4,
		"한국":                   4,
		"\u1112\u1161\u11ab":   2, // the same letter, taken apart
		"🙂":                    2,
		"กำ":                   2, // a vowel above
		"हिन्दी":               5, // signs that some terminals give a cell
		"\u2764\ufe0f":         2, // a heart that is made an emoji
		"→ ✓ ± ° …":            9, // ambiguous, narrow outside of East Asia
		"\u05e9\u05c1\u05dc":   2, // a point
		"a\u0300\u0301\u0302b": 2,
	} {
		if got := cells(text); got != want {
			t.Errorf("%q fills %d cells, want %d", text, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"plain", 5, "plain"},
		{"plain", 4, "pla…"},
		{"plain", 1, "…"},
		{"plain", 0, ""},
		{"plain", -1, ""},
		{"", 0, ""},
		{"漢字漢", 6, "漢字漢"},
		{"漢字漢", 5, "漢字…"},
		{"漢字漢", 4, "漢…"}, // half a letter is none
		{"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
		{"e\u0301e\u0301", 2, "e\u0301e\u0301"},
	} {
		if got := cut(tt.text, tt.most); got != tt.want {
			t.Errorf("cut(%q, %d) is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

func TestFold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"", 5, ""},
		{"one two three", 20, "one two three"},
		{"one two three", 7, "one two|three"},
		{"one two three", 8, "one two|three"},
		{"one two three", 6, "one|two|three"},
		{"abcdefghij", 4, "abcd|efgh|ij"},
		{"a bcdefgh", 4, "a|bcde|fgh"},
		{"漢字漢字", 5, "漢字|漢字"},
		{"漢字", 1, "漢|字"}, // less than a letter needs
	} {
		if got := strings.Join(fold(tt.text, tt.most), "|"); got != tt.want {
			t.Errorf("fold(%q, %d) is %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

func FuzzLines(f *testing.F) {
	for _, seed := range []string{"", "plain words in a row", forged, "漢字漢字", "e\u0301\u0301\u0301", "  two  spaces ", strings.Repeat("x", 99)} {
		f.Add(seed, 20, true)
		f.Add(seed, 80, false)
	}
	f.Fuzz(func(t *testing.T, text string, width int, whole bool) {
		if width = width & 0xff; width == 0 {
			t.Skip()
		}
		r := row{state: "warning", took: "12ms", text: shown(text), whole: whole, inner: !whole}
		for _, color := range []style{plain, alarm} {
			r.style = color
			checkLines(t, "fuzz", r.lines(width), width)
		}
		if whole && width > 40 && len(text) < longestShown {
			var back strings.Builder
			for _, line := range r.lines(width) {
				back.WriteString(line[len(line)-1].text)
			}
			if squeeze(back.String()) != squeeze(shown(text)) {
				t.Errorf("of %q is left %q", text, back.String())
			}
		}
	})
}

func squeeze(text string) string { return strings.ReplaceAll(text, " ", "") }
