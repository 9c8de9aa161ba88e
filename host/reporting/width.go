package reporting

import (
	"strings"
	"unicode"

	"golang.org/x/text/width"
)

const ellipsis = "…"

// cells is how many cells of a terminal a text fills that was escaped before. Where terminals do not agree it is the
// most that any of them uses: a line that is too short does less harm than one that wraps.
func cells(text string) int {
	n := 0
	for _, r := range text {
		n += runeCells(r)
	}
	return n
}

func runeCells(r rune) int {
	switch {
	case r < 0x300: // every letter of Europe
		return 1
	case unicode.Is(unicode.Variation_Selector, r):
		return 1 // it can make the emoji before it wide
	case unicode.In(r, unicode.Mn, unicode.Me), isJamo(r):
		return 0
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	default:
		return 1
	}
}

// isJamo: the vowels and final consonants of Hangul stand in the cells of the consonant before them.
func isJamo(r rune) bool { return 0x1160 <= r && r <= 0x11ff || 0xd7b0 <= r && r <= 0xd7ff }

// cut shortens a text to a number of cells. Nothing follows an ellipsis.
func cut(text string, most int) string {
	if len(text) <= most || cells(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	head, _ := split(text, most-1)
	return head + ellipsis
}

// split divides a text so that the head fills at most so many cells; marks stay with the letter before them.
func split(text string, most int) (head, tail string) {
	n := 0
	for i, r := range text {
		if n += runeCells(r); n > most {
			return text[:i], text[i:]
		}
	}
	return text, ""
}

// fold divides a text into lines of at most so many cells, between words where that is possible. Nothing is lost but
// the spaces between them.
func fold(text string, most int) []string {
	most = max(most, 2) // the widest letter
	var lines []string
	for cells(text) > most {
		head, tail := split(text, most)
		if at := strings.LastIndexByte(head, ' '); !strings.HasPrefix(tail, " ") && at > 0 {
			head, tail = head[:at], head[at:]+tail
		}
		lines = append(lines, strings.TrimRight(head, " "))
		text = strings.TrimLeft(tail, " ")
	}
	return append(lines, text)
}
