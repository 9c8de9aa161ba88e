package target

import (
	"maps"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestAssignments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		data string
		want map[string]string
		err  string
	}{
		"bare":                  {data: "ID=debian\n", want: map[string]string{"ID": "debian"}},
		"no newline at the end": {data: "ID=debian", want: map[string]string{"ID": "debian"}},
		"empty file":            {data: "", want: map[string]string{}},
		"empty value":           {data: "ID=\nID_LIKE=\"\"\n", want: map[string]string{"ID": "", "ID_LIKE": ""}},
		"double quotes":         {data: `ID_LIKE="rhel fedora"`, want: map[string]string{"ID_LIKE": "rhel fedora"}},
		"single quotes":         {data: `ID_LIKE='rhel "fedora" \n'`, want: map[string]string{"ID_LIKE": `rhel "fedora" \n`}},
		"escapes":               {data: `ID="a\"b\$c\` + "`" + `d\\e\nf"`, want: map[string]string{"ID": "a\"b$c`d\\e\\nf"}},
		"bare escapes":          {data: `ID=a\ b\"c`, want: map[string]string{"ID": `a b"c`}},
		"bare blanks":           {data: "ID=a b", want: map[string]string{"ID": "a b"}},
		"backslash at the end":  {data: `ID=a\`, want: map[string]string{"ID": `a\`}},
		"equals sign in value":  {data: `ID=a=b`, want: map[string]string{"ID": "a=b"}},
		"CRLF":                  {data: "ID=a\r\nID_LIKE=\"b c\"\r\n", want: map[string]string{"ID": "a", "ID_LIKE": "b c"}},
		"byte order mark":       {data: "\ufeffID=a\n", want: map[string]string{"ID": "a"}},
		"comments":              {data: "# ID=a\n  #ID=b\nID=c\nID_LIKE=\"d\" # e\n", want: map[string]string{"ID": "c", "ID_LIKE": "d"}},
		"indented":              {data: "  ID=a  \n", want: map[string]string{"ID": "a"}},
		"the last wins":         {data: "ID=a\nID=b\n", want: map[string]string{"ID": "b"}},
		"junk is skipped":       {data: "junk\n=x\nID =b\nexport ID=c\n\x00\nID=a\n", want: map[string]string{"ID": "a"}},
		"other keys are unread": {data: "BUG_URL=\"x\nID=a\n", want: map[string]string{"ID": "a"}},
		"bad UTF-8":             {data: "ID=\"a\xffb\"", want: map[string]string{"ID": "a\ufffdb"}},
		"open double quote":     {data: "\n# c\nID=\"a\n", err: "line 3: ID: the quote is not closed"},
		"escaped last quote":    {data: `ID="a\"`, err: "line 1: ID: the quote is not closed"},
		"open single quote":     {data: "ID='a", err: "line 1: ID: the quote is not closed"},
		"concatenation":         {data: `ID="a"b`, err: "line 1: ID: text follows the closing quote"},
		"comment without blank": {data: `ID="a"#b`, err: "line 1: ID: text follows the closing quote"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := assignments(test.data, "ID", "ID_LIKE")
			if test.err != "" {
				if err == nil || !strings.HasPrefix(err.Error(), test.err) {
					t.Fatalf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(got, test.want) {
				t.Fatalf("got %q, want %q", got, test.want)
			}
		})
	}
}

func FuzzAssignments(f *testing.F) {
	for _, seed := range []string{
		"ID=debian\nVERSION_ID=\"12\"\n",
		"ID='a'\r\nID_LIKE=\"b \\\"c\\\"\"\r\n",
		"\ufeff# comment\nID=\\\n",
		"ID=\"",
		"ID=''x",
		"ID=\xff\x00",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data string) {
		values, err := assignments(data, "ID", "ID_LIKE")
		if err != nil {
			if values != nil || !strings.HasPrefix(err.Error(), "line ") {
				t.Fatalf("%v %v", values, err)
			}
			return
		}
		for key, value := range values {
			if key != "ID" && key != "ID_LIKE" || !utf8.ValidString(value) || strings.ContainsAny(value, "\n") {
				t.Fatalf("%q = %q", key, value)
			}
			// Written back in double quotes, the value reads the same.
			quoted := key + `="` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(value) + `"`
			again, err := assignments(quoted, key)
			if err != nil || again[key] != value {
				t.Fatalf("%s reads as %q (%v), want %q", quoted, again[key], err, value)
			}
		}
	})
}
