package document

import (
	"fmt"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	const bom = byteOrderMark
	for name, c := range map[string]struct {
		text string
		want []string // LINE TEXT, blank ones with a minus
	}{
		"bare":                    {"a: b", []string{`1 "a: b"`}},
		"two":                     {"a\n---\nb\n", []string{`1 "a\n"`, `2 "---\nb\n"`}},
		"explicit":                {"---\na\n---\nb\n", []string{`1 "---\na\n"`, `3 "---\nb\n"`}},
		"comment first":           {"# x\n\n---\na\n", []string{`1 "# x\n\n---\na\n"`}},
		"directive":               {"%YAML 1.2\n---\na\n", []string{`1 "%YAML 1.2\n---\na\n"`}},
		"end":                     {"a\n...\nb\n...\n", []string{`1 "a\n...\n"`, `3 "b\n...\n"`}},
		"end and start":           {"a\n...\n# x\n%YAML 1.2\n---\nb\n", []string{`1 "a\n...\n"`, `3 "# x\n%YAML 1.2\n---\nb\n"`}},
		"empty between":           {"---\n---\n# c\n---\na", []string{`-1 "---\n"`, `-2 "---\n# c\n"`, `4 "---\na"`}},
		"percent in content":      {"a: |\n b\n%c\n---\n%d", []string{`1 "a: |\n b\n%c\n"`, `4 "---\n%d"`}},
		"text on the marker line": {"--- a\n---\t{b: c}\n--- # d\n", []string{`1 "--- a\n"`, `2 "---\t{b: c}\n"`, `-3 "--- # d\n"`}},
		"CRLF":                    {"---\r\na\r\n---\r\n...\r\n", []string{`1 "---\r\na\r\n"`, `-3 "---\r\n...\r\n"`}},
		"no markers":              {"a: ---\n ---\n---b\n....\n\"---\"\n", []string{`1 "a: ---\n ---\n---b\n....\n\"---\"\n"`}},
		"marker at the end":       {"a\n---", []string{`1 "a\n"`, `-2 "---"`}},
		"open quotes":             {"a: 'b\n---\nc", []string{`1 "a: 'b\n"`, `2 "---\nc"`}},
		"BOM":                     {bom + "a\n", []string{`1 "a\n"`}},
		"BOM before marker":       {bom + "---\na\n" + bom + "---\nb", []string{`1 "---\na\n"`, `3 "---\nb"`}},
		"BOM after marker":        {"---\n" + bom + "a\n---\n# c\n" + bom + "# d\n" + bom + "b", []string{`1 "---\na\n"`, `3 "---\n# c\n# d\nb"`}},
		"BOM before end":          {"a\n" + bom + "...\nb", []string{`1 "a\n...\n"`, `3 "b"`}},
		"BOM inside":              {"a\n" + bom + "b", []string{`1 "a\n\ufeffb"`}},
		"BOM after end":           {"a\n...\n" + bom + "b", []string{`1 "a\n...\n"`, `3 "b"`}},
		"nothing":                 {"", nil},
	} {
		var got []string
		for chunk := range split([]byte(c.text)) {
			sign := ""
			if chunk.blank {
				sign = "-"
			}
			got = append(got, fmt.Sprintf("%s%d %q", sign, chunk.line, chunk.text))
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// A syntax error ends its document and nothing else.
func TestSyntaxErrorEndsItsDocument(t *testing.T) {
	t.Parallel()
	good := func(name string) string {
		return "apiVersion: v1\nkind: A\nmetadata: {name: " + name + "}\nspec: {}\n"
	}
	for name, c := range map[string]struct{ text, want string }{
		"tab":            {"apiVersion: v1\n\tkind: A\n", "7:1 : is not valid YAML: a tab is not allowed in indentation"},
		"open quotes":    {"apiVersion: \"v1\nkind: A\n", "6:13 : is not valid YAML: an unterminated quoted string"},
		"open list":      {"apiVersion: [v1\nkind: A\n", "7:5 : is not valid YAML: a comma or ] is expected here"},
		"no colon":       {"apiVersion: v1\nkind\nspec: {}\n", "7:1 : is not valid YAML: a colon is missing after this key"},
		"two colons":     {"apiVersion: v1: x\n", "6:15 : is not valid YAML: a colon followed by a space is not allowed here"},
		"dedent":         {"spec:\n    a: b\n  c: d\n", "8:3 : is not valid YAML: a key is expected here"},
		"at sign":        {"spec: @x\n", "6:7 : is not valid YAML: a value cannot start with this character"},
		"behind the end": {"{a: b} c\n", "6:8 : is not valid YAML: text after the end of the document"},
		"bad escape":     {"spec: \"\\q\"\n", "6:8 : is not valid YAML: an unknown escape in double quotes"},
		"bad tag":        {"spec: !x!y z\n", "6:7 : is not valid YAML: an undefined tag"},
		"bad UTF-8":      {"spec: äö\xFF\n", "6:9 : is not valid UTF-8"},
		"NUL":            {"spec: a\x00b\n", "6:8 : contains a NUL character"},
		"NUL in comment": {"# \x00\n", "6:3 : contains a NUL character"},
		"control":        {"spec: {}\r\na: \x1b[0m\n", "7:4 : contains a control character"},
		"lone CR":        {"spec: {}\ra: b\n", "6:9 : contains a carriage return without a line feed"},
		"NEL":            {"spec: a\u0085b\n", "6:8 : contains a line break of YAML 1.1 (NEL, LS or PS)"},
		"LS":             {"spec: # \u2028kind: B\n", "6:9 : contains a line break of YAML 1.1 (NEL, LS or PS)"},
		"PS":             {"spec: \u2029\n", "6:7 : contains a line break of YAML 1.1 (NEL, LS or PS)"},
		"inner BOM":      {"spec: {}\n\uFEFFkind: A\n", "7:1 : contains a byte order mark"},
		"noncharacter":   {"spec: \uFFFE\n", "6:7 : contains a Unicode noncharacter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stream := decode(t, good("a")+"---\n"+c.text+"---\n"+good("b"))
			expect(t, brief(stream.Errors), []string{c.want})
			if len(stream.Documents) != 2 || stream.Documents[0].Name != "a" || stream.Documents[1].Name != "b" || stream.Documents[1].Index != 2 {
				t.Errorf("the other documents were not checked: %v", stream.Documents)
			}
		})
	}
}

func TestDirectives(t *testing.T) {
	t.Parallel()
	body := "---\n" + withSpec("a: 1")
	for text, want := range map[string]string{
		"%YAML 1.2\n" + body:              "",
		"%YAML 1.1 # old\r\n# c\n" + body: "",
		"%YAML 1.3\n" + body:              "1:1 : contains an unknown directive",
		"%YAML 1.2\n%YAML 1.2\n" + body:   "2:1 : contains an unknown directive",
		"# c\n%TAG ! tag:x,1:\n" + body:   "2:1 : contains an unknown directive",
		"%secret\n" + body:                "1:1 : contains an unknown directive",
		"%YAML 1.2\na: b\n":               "2:1 : follows a directive without ---",
		"%YAML 1.2\n":                     "1:1 : contains a directive without a document",
		"%YAML 1.2\n---\n---\n" + body:    "",
		body + "...\n%YAML 1.2\n---\n":    "",
	} {
		stream := decode(t, text)
		if got := strings.Join(brief(stream.Errors), "|"); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
		if want == "" && len(stream.Documents) != 1 {
			t.Errorf("%q: got %d documents", text, len(stream.Documents))
		}
	}
}

// Byte order marks and CRLF change neither values nor positions.
func TestPositionsAcrossLineEndings(t *testing.T) {
	t.Parallel()
	lines := withSpec("text: |\n  one\n  two\nquoted: \"a\n  b\"\nplain: a\n  b\nlast: [x, y]")
	plain := one(t, lines)
	for name, text := range map[string]string{
		"BOM":                byteOrderMark + lines,
		"CRLF":               strings.ReplaceAll(lines, "\n", "\r\n"),
		"BOM and CRLF":       byteOrderMark + strings.ReplaceAll(lines, "\n", "\r\n"),
		"CR at the very end": strings.TrimSuffix(strings.ReplaceAll(lines, "\n", "\r\n"), "\n"),
	} {
		d := one(t, text)
		if got, want := jsonOf(t, d), jsonOf(t, plain); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
		for _, field := range []string{"apiVersion", "kind", "spec.quoted", "spec.last[1]"} {
			if got, want := d.Locate(field), plain.Locate(field); got != want {
				t.Errorf("%s: %s is at %v, want %v", name, field, got, want)
			}
		}
	}
}
