package settings

import (
	"strings"
	"testing"
)

// accepts runs a check over valid and invalid texts.
func accepts(t *testing.T, name string, check func(string) error, good, bad []string) {
	t.Helper()
	for _, text := range good {
		if err := check(text); err != nil {
			t.Errorf("%s refuses %q: %v", name, text, err)
		}
	}
	for _, text := range bad {
		if check(text) == nil {
			t.Errorf("%s takes %q", name, text)
		}
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	accepts(t, "linux", func(text string) error { return checkPath(text, false) },
		[]string{"/a", "/a/b c/ü", `/a\b`, "/a..b"},
		[]string{"", "/", "a", "./a", "/a/", "/a//b", "/a/../b", "/a/.", "/a\nb", "/a\x00", `C:\a`, "~/a"})
	accepts(t, "windows", func(text string) error { return checkPath(text, true) },
		[]string{`C:\a`, `d:\Program Files\b.c`},
		[]string{"", `C:\`, `C:`, `C:a`, `C:\a\`, `C:\a\\b`, `C:\a\..\b`, `C:\a\.`, `C:\a/b`, "/a", `\\host\share`, `\a`, `C:\a:b`, "C:\\a\tb", `C:\a*`})
	accepts(t, "pattern", func(text string) error { return checkPattern(text, false) },
		[]string{"/a", "/a/*.toml", "/a/[ab]?.toml"},
		[]string{"", "*.toml", "/*/a", "/a/[", "/a/b/", "/a/../*", "a/*.toml", "/[a]/b"})
	accepts(t, "pattern of windows", func(text string) error { return checkPattern(text, true) },
		[]string{`C:\a\*.toml`}, []string{`C:\*\a`, "/a/*.toml", `a\*`})
}

func TestHosts(t *testing.T) {
	t.Parallel()
	accepts(t, "portOf", func(text string) error { _, err := portOf(text); return err },
		[]string{"a", "a.example.com", "A.Example:5000", "10.0.0.1", "10.0.0.1:80", "[::1]", "[2001:db8::1]:5000", "localhost:65535", "xn--bcher-kva.example"},
		[]string{
			"", ":", ":80", "a:", "a:0", "a:080", "a:65536", "a:+1", "a:x", "a b", "-a", "a-", "a..b", ".a", "a.", "a_b", "ü.example", "::1", "[::1",
			"::1]", "[::1]x", "[::1]:", "[10.0.0.1]", "[fe80::1%eth0]", "[]", "a/b", "u@a", "a\n", strings.Repeat("a.", 127) + "a", strings.Repeat("a", 64),
		})
	accepts(t, "checkAddress", checkAddress, []string{"127.0.0.1:1338", "[::]:1", "localhost:80"}, []string{"127.0.0.1", ":1338", "[::1]", ""})
	for host, want := range map[string]bool{"a": false, "a.b": true, "a:1": true, "localhost": true, "[::1]": true, "A": true} {
		if isRegistryHost(host) != want {
			t.Errorf("%s is taken for a host: %v", host, !want)
		}
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	accepts(t, "checkURL", func(text string) error { _, err := checkURL(text, "https", "http"); return err },
		[]string{"https://a", "http://a:80/", "https://a.example/v2/x", "https://[::1]:5000", "https://a/x/"},
		[]string{
			"", "a", "a:80", "ftp://a", "https:a", "https://", "https:///x", "HTTPS://a", "https://a?x=1", "https://a?", "https://a#", "https://a#x",
			"https://a/../b", "https://a//b", "https://a/%2e", "https://a/ü", "https://a b", "https://a:99999", "https://[::1", "https://a_b", "//a", " https://a", "https://a\n",
		})
}

func TestImages(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	accepts(t, "checkImage", checkImage,
		[]string{
			"r.example.com/pause:3.10", "localhost:5000/a/b__c-d.e:v1", "r.example.com/a@" + digest, "[::1]:5000/a:1",
			"r.example.com/a@sha512:" + strings.Repeat("0", 128), "10.0.0.1/a:_",
		},
		[]string{
			"", "pause:3.10", "library/pause:3.10", "r.example.com/pause", "r.example.com/:1", "r.example.com:1", "r.example.com/A:1", "r.example.com/a:",
			"r.example.com/a:b:c", "r.example.com/a:-b", "r.example.com/a:1@" + digest, "r.example.com/a@sha256:0", "r.example.com/a@" + digest + "0",
			"https://r.example.com/a:1", "r.example.com//a:1", "r.example.com/a/:1", "r.example.com/a..b:1", "r.example.com/a:1 ", "r.example.com/a:1\n",
			"r.example.com/" + strings.Repeat("a", 255) + ":1", "r.example.com/a:" + strings.Repeat("1", 129), "r_x.example/a:1",
		})
	accepts(t, "isIdentifier", func(text string) error {
		if !isIdentifier(text) {
			return checkPath("", false)
		}
		return nil
	}, []string{"overlayfs", "a.b_c-d"}, []string{"", "-a", "a-", "a b", "a/b", "a..b", "ü", strings.Repeat("a", 77)})
}

func TestNoProxy(t *testing.T) {
	t.Parallel()
	accepts(t, "checkNoProxy", checkNoProxy,
		[]string{"*", "example.com", ".example.com", "*.example.com", "10.0.0.1", "10.0.0.0/8", "fd00::/8", "::1", "[::1]:80", "example.com:8080"},
		[]string{"", "a,b", "a b", "10.0.0.0/33", "/", "http://a", "a/b", "*.", ".", "a:", "a:x", "[::1"})
}
