package nodes

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestDebianMirror(t *testing.T) {
	t.Parallel()
	const deb822 = "# comment\nTypes: deb deb-src\nURIs: http://mirror.test/debian\nSuites: bookworm bookworm-updates\nComponents: main contrib\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  string // "" is an error
	}{
		{"one-line", map[string]string{"sources.list": "deb http://mirror.test/debian bookworm main\n"}, "http://mirror.test/debian"},
		{"one-line with options", map[string]string{
			"sources.list": "  deb [ arch=amd64 signed-by=/usr/share/keyrings/debian-archive-keyring.gpg ] https://mirror.test/d/ bookworm main # here\n",
		}, "https://mirror.test/d/"},
		{"list directory", map[string]string{"sources.list": "# nothing\n", "sources.list.d/a.list": "deb\thttp://mirror.test/debian\tstable\tmain"}, "http://mirror.test/debian"},
		{"deb822", map[string]string{"sources.list.d/debian.sources": deb822}, "http://mirror.test/debian"},
		{"deb822 without a last newline, CRLF", map[string]string{
			"sources.list.d/debian.sources": strings.ReplaceAll(strings.TrimSpace(deb822), "\n", "\r\n"),
		}, "http://mirror.test/debian"},
		{"deb822 with continuation lines and other case", map[string]string{
			"sources.list.d/debian.sources": "TYPES: deb\nuris:\n http://mirror.test/one\n http://mirror.test/two\nSuites: trixie\nComponents:\n# comment\n\tmain\n",
		}, "http://mirror.test/one"},
		{"deb822 second stanza", map[string]string{
			"sources.list.d/debian.sources": "Types: deb\nURIs: http://security.test/\nSuites: bookworm-security\nComponents: main\n \n" + deb822,
		}, "http://mirror.test/debian"},
		{"deb822 disabled", map[string]string{"sources.list.d/debian.sources": "Enabled: no\n" + strings.TrimPrefix(deb822, "# comment\n")}, ""},
		{"main list before the directory", map[string]string{
			"sources.list":                  "deb http://first.test/debian bookworm main\n",
			"sources.list.d/debian.sources": deb822,
		}, "http://first.test/debian"},
		{"third party with Debian's suite name", map[string]string{
			"sources.list.d/a.list":         "deb [signed-by=/etc/apt/keyrings/vendor.gpg] https://vendor.test bookworm main\n",
			"sources.list.d/debian.sources": deb822,
		}, "http://mirror.test/debian"},
		{"third party with its own component", map[string]string{"sources.list": "deb https://vendor.test bookworm stable\n"}, ""},
		{"third party with its own suite", map[string]string{"sources.list": "deb https://vendor.test vendor main\n"}, ""},
		{"sources only", map[string]string{"sources.list": "deb-src http://mirror.test/debian bookworm main\n"}, ""},
		{"commented out", map[string]string{"sources.list": "#deb http://mirror.test/debian bookworm main\n"}, ""},
		{"medium", map[string]string{"sources.list": "deb cdrom:[Debian 12]/ bookworm main\n"}, ""},
		{"flat archive", map[string]string{"sources.list": "deb http://mirror.test/debian ./\n"}, ""},
		{"options that never end", map[string]string{"sources.list": "deb [arch=amd64 http://mirror.test/debian bookworm main\n"}, ""},
		{"other file names are not apt's", map[string]string{"sources.list.d/debian.sources.disabled": deb822}, ""},
		{"no sources", map[string]string{}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			apt := fstest.MapFS{}
			for name, text := range c.files {
				apt[name] = &fstest.MapFile{Data: []byte(text)}
			}
			got, err := debianMirror(apt, "bookworm")
			if got != c.want || (err == nil) != (c.want != "") {
				t.Errorf("got %q, %v; want %q", got, err, c.want)
			}
		})
	}
}

func FuzzParseSources(f *testing.F) {
	for _, seed := range []string{
		"", "deb", "deb [", "deb [a=b] u s c", "Types: deb\nURIs: u\nSuites: s\n", ": \n", " x\n", "deb http://m.test/d bookworm main",
		"Types: deb\nURIs:\n http://m.test/d\nSuites: bookworm\nComponents: main\nEnabled: no\n\nTypes:", "a:\r\n b\r\n\r\n", "\x00:\xff\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range parseOneLine(text) {
			if s.uri == "" || s.suite == "" || len(s.components) == 0 {
				t.Errorf("incomplete source %+v", s)
			}
		}
		for _, s := range parseDeb822(text) {
			if strings.ContainsAny(s.uri+s.suite, " \t\r\n") || s.uri == "" || s.suite == "" {
				t.Errorf("malformed source %+v", s)
			}
		}
		apt := fstest.MapFS{"sources.list": {Data: []byte(text)}, "sources.list.d/x.sources": {Data: []byte(text)}}
		if mirror, err := debianMirror(apt, "bookworm"); err == nil && (!isWeb(mirror) || strings.ContainsAny(mirror, " \n")) {
			t.Errorf("mirror %q", mirror)
		}
	})
}

func TestBesideDebian(t *testing.T) {
	t.Parallel()
	for debian, want := range map[string]string{
		"http://mirror.test/debian":                "http://mirror.test/ubuntu",
		"https://name:word@mirror.test/os/debian/": "https://name:word@mirror.test/os/ubuntu",
	} {
		got, err := besideDebian(debian)
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v; want %q", debian, got, err, want)
		}
	}
	if got, err := besideDebian("http://name:wo%rd@mirror.test/debian"); err == nil || strings.Contains(err.Error(), "rd@") {
		t.Errorf("got %q, %v", got, err)
	}
}
