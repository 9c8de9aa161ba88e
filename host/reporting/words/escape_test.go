package words

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// forged is plugin output that imitates the host.
const forged = "fine\nSysctl/base: changed\r\x1b[2K\u202egnihton\u2066\u200b\u2028\u0085\x00\u3164\U000e0041\x7f\xff"

func TestEscape(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                               "",
		"plain text, ümläut, 漢字, 🙂":      "plain text, ümläut, 漢字, 🙂",
		`C:\run\x`:                       `C:\run\x`, // a backslash is harmless
		`say "it's"`:                     `say "it's"`,
		"two\nlines\r\n":                 `two\nlines\r\n`,
		"tab\tbell\abackspace\bnull\x00": `tab\tbell\abackspace\bnull\x00`,
		"\x1b[31mred\x1b[0m":             `\x1b[31mred\x1b[0m`,
		"\u009b31m":                      `\u009b31m`, // the one-character CSI
		"\x9b31m":                        `\x9b31m`,   // not even UTF-8
		"\x7f":                           `\x7f`,
		"\u202eevil\u202c":               `\u202eevil\u202c`,
		"\u2066a\u2069\u200e\u061c":      `\u2066a\u2069\u200e\u061c`,
		"a\u2028b\u2029c\u0085d":         `a\u2028b\u2029c\u0085d`,
		"a\u200bb\u200dc\ufeffd\u00ade":  `a\u200bb\u200dc\ufeffd\u00ade`,
		"\u3164\u115f\u034f":             `\u3164\u115f\u034f`, // letters without a shape
		"a\u00a0b\u3000c":                `a\u00a0b\u3000c`,    // spaces that are none
		"\U000e0041":                     `\U000e0041`,         // a tag
		"\ue000":                         `\ue000`,             // private
		"\xff\xc3\xed\xa0\x80":           `\xff\xc3\xed\xa0\x80`,
		"\ufffd":                         "\ufffd",
	} {
		if got := Escape(text); got != want {
			t.Errorf("Escape(%q) is %q, want %q", text, got, want)
		}
	}
}

func TestEscapeLines(t *testing.T) {
	t.Parallel()
	if got, want := EscapeLines("a\tb\n\x1b[1A\r\n\u202ec\n"), "a\tb\n\\x1b[1A\\r\n\\u202ec\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func FuzzEscape(f *testing.F) {
	for _, seed := range []string{"", "plain", forged, "\xff", "\u202e", "\\x1b", strings.Repeat("\n", 100), "a\tb\r\nc"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Escape(text)
		if !utf8.ValidString(got) {
			t.Errorf("%q became %q, which is not UTF-8", text, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || !unicode.IsGraphic(r) {
				t.Errorf("%q became %q, which holds %U", text, got, r)
			}
		}
		if again := Escape(got); again != got {
			t.Errorf("%q is not the same when it is escaped again: %q", got, again)
		}
		if len(got) < len(text) {
			t.Errorf("%q became %q: something is lost", text, got)
		}
		lines := EscapeLines(text)
		if strings.Count(lines, "\n") != strings.Count(text, "\n") || strings.Count(lines, "\t") != strings.Count(text, "\t") {
			t.Errorf("%q became %q", text, lines)
		}
		for part := range strings.FieldsFuncSeq(lines, func(r rune) bool { return r == '\n' || r == '\t' }) {
			if Escape(part) != part {
				t.Errorf("%q holds %q", lines, part)
			}
		}
	})
}
