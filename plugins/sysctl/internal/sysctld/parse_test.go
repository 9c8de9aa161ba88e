package sysctld

import (
	"slices"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		rules      []Rules
		want       []Line
	}{
		{name: "dots and slashes name one key", text: "kernel.panic = 1\nkernel/panic=2\n", want: []Line{
			{Number: 1, Key: "kernel/panic", Value: "1"}, {Number: 2, Key: "kernel/panic", Value: "2"},
		}},
		{name: "the first separator decides", text: "net.ipv4.conf.e0/1.x=1\nnet/ipv4/conf/e0.1/x=1", want: []Line{
			{Number: 1, Key: "net/ipv4/conf/e0.1/x", Value: "1"}, {Number: 2, Key: "net/ipv4/conf/e0.1/x", Value: "1"},
		}},
		{name: "comments and empty lines", text: "# a.b=1\n  ; a.b=2\n\n \t \n  a.b=3", want: []Line{
			{Number: 5, Key: "a/b", Value: "3"},
		}},
		{name: "a comment sign inside a line is content", text: "a.b = 1 # one", want: []Line{
			{Number: 1, Key: "a/b", Value: "1 # one"},
		}},
		{name: "the first equals sign divides", text: "a.b=c=d", want: []Line{{Number: 1, Key: "a/b", Value: "c=d"}}},
		{name: "an empty value", text: "a.b =\n", want: []Line{{Number: 1, Key: "a/b"}}},
		{name: "white space inside a value stays", text: "a.b =\t1\t 2  \n", want: []Line{
			{Number: 1, Key: "a/b", Value: "1\t 2"},
		}},
		{name: "a dash before an assignment", text: "-a.b = 1", want: []Line{
			{Number: 1, Key: "a/b", Value: "1", IgnoreFailure: true},
		}},
		{name: "a dash without a value excludes", text: "-a.b", want: []Line{{Number: 1, Key: "a/b", Exclude: true}}},
		{name: "patterns", text: "net.ipv4.conf.*.x = 1\n-net.ipv4.conf.e[0-9].x", want: []Line{
			{Number: 1, Key: "net/ipv4/conf/*/x", Value: "1"},
			{Number: 2, Key: "net/ipv4/conf/e[0-9]/x", Exclude: true},
		}},
		{name: "lines that are neither are skipped", text: "nonsense\na.b=1\nmore nonsense", want: []Line{
			{Number: 2, Key: "a/b", Value: "1"},
		}},
		{name: "CRLF and no final line feed", text: "a.b=1\r\n\r\na.c=2\r", want: []Line{
			{Number: 1, Key: "a/b", Value: "1"}, {Number: 3, Key: "a/c", Value: "2"},
		}},
		{
			name: "systemd simplifies a path", rules: []Rules{Systemd}, text: "/a//b/./c/=1",
			want: []Line{{Number: 1, Key: "a/b/c", Value: "1"}},
		},
		{
			name: "procps does not", rules: []Rules{Procps}, text: "/a//b/./c/=1",
			want: []Line{{Number: 1, Key: "/a//b/./c/", Value: "1"}},
		},
		{name: "a long line", text: "a.b=" + strings.Repeat("x", 100_000) + "\na.c=1", want: []Line{
			{Number: 1, Key: "a/b", Value: strings.Repeat("x", 100_000)}, {Number: 2, Key: "a/c", Value: "1"},
		}},
		{
			name: "systemd ends a line at a lone carriage return", rules: []Rules{Systemd}, text: "a.b=1\ra.c=2",
			want: []Line{{Number: 1, Key: "a/b", Value: "1"}, {Number: 2, Key: "a/c", Value: "2"}},
		},
		{
			name: "procps does not", rules: []Rules{Procps}, text: "a.b=1\ra.c=2",
			want: []Line{{Number: 1, Key: "a/b", Value: "1\ra.c=2"}},
		},
		{
			name: "systemd ends a line at a NUL", rules: []Rules{Systemd}, text: "a.b=1\x00a.c=2",
			want: []Line{{Number: 1, Key: "a/b", Value: "1"}, {Number: 2, Key: "a/c", Value: "2"}},
		},
		{
			name: "procps drops what follows a NUL", rules: []Rules{Procps}, text: "a.b=1\x00a.c=2\na.d=3",
			want: []Line{{Number: 1, Key: "a/b", Value: "1"}, {Number: 2, Key: "a/d", Value: "3"}},
		},
		{
			name: "systemd allows blanks after the dash", rules: []Rules{Systemd}, text: "- a.b = 1",
			want: []Line{{Number: 1, Key: "a/b", Value: "1", IgnoreFailure: true}},
		},
		{
			name: "for procps they belong to the key", rules: []Rules{Procps}, text: "- a.b = 1",
			want: []Line{{Number: 1, Key: " a/b", Value: "1", IgnoreFailure: true}},
		},
		{
			name: "systemd stops at a line of 1 MiB", rules: []Rules{Systemd},
			text: "a.b=1\n#" + strings.Repeat("x", longestLine) + "\na.c=2",
			want: []Line{{Number: 1, Key: "a/b", Value: "1"}},
		},
		{
			name: "procps reads a line of 1 MiB", rules: []Rules{Procps},
			text: "a.b=1\n#" + strings.Repeat("x", longestLine) + "\na.c=2",
			want: []Line{{Number: 1, Key: "a/b", Value: "1"}, {Number: 3, Key: "a/c", Value: "2"}},
		},
	} {
		rules := c.rules
		if rules == nil {
			rules = []Rules{Systemd, Procps}
		}
		for _, r := range rules {
			if lines := Parse([]byte(c.text), r); !slices.Equal(lines, c.want) {
				t.Errorf("%s (rules %d): got %+v, want %+v", c.name, r, lines, c.want)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "# c\n; c\na.b = 1\n-a.b\n-a.* = 2\nbad\n", "a.b=1\r\na.c=2\r", "a\x00b=1", "=\n-\n-=\n--a=b", "\xff\xfe=\x80",
		"net.ipv4.conf.eth0/100.rp_filter = 1",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, rules := range []Rules{Systemd, Procps} {
			lines := Parse(data, rules)
			last := 0
			for _, line := range lines {
				if line.Number <= last {
					t.Fatalf("line numbers do not rise: %+v", lines)
				}
				last = line.Number
				if strings.ContainsAny(line.Key+line.Value, "\n\x00") {
					t.Fatalf("a line end inside a line: %+v", line)
				}
				if line.Exclude && (line.Value != "" || line.IgnoreFailure) {
					t.Fatalf("an exclusion with a value: %+v", line)
				}
			}
			if most := len(data) + 1; len(lines) > most {
				t.Fatalf("more lines than bytes")
			}
		}
	})
}
