package settings

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
)

func FuzzParseRelease(f *testing.F) {
	for _, seed := range []string{"containerd github.com/containerd/containerd v1.7.24 88bf19b", "1.6.20~ds1-1+deb12u3", "v2.3.7", "2.0.0-rc.3", "2.1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRelease(text)
		if err != nil {
			return
		}
		if again, err := ParseRelease(r.String()); err != nil || again != r {
			t.Errorf("%q: %v is read back as %v, %v", text, r, again, err)
		}
		if r.Major < 0 || r.Minor < 0 || r.Patch < 0 || r.Format() < r.Written() {
			t.Errorf("%q: %v", text, r)
		}
	})
}

// FuzzHost: a host that is taken becomes one directory of its own and a URL that leads to it.
func FuzzHost(f *testing.F) {
	for _, seed := range []string{"r.test", "r.test:5000", "[::1]:80", "10.0.0.1", "localhost", "a..b", "[::1%1]:1", "../x:1", "r.test:"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		if _, err := portOf(host); err != nil {
			return
		}
		for _, at := range []Paths{PathsOf("linux"), PathsOf("windows")} {
			name := strings.TrimPrefix(at.HostDirectory(host), at.Join(at.Certs, ""))
			if name == "" || name == "." || name == ".." || name == AnyHost || strings.ContainsAny(name, "/\\\x00\n ") || at.Windows && strings.Contains(name, ":") {
				t.Errorf("%q has the directory %q", host, name)
			}
		}
		if u, err := checkURL("https://"+host, "https"); err != nil || u.Host != host {
			t.Errorf("%q: no URL leads to it: %v", host, err)
		}
	})
}

func FuzzImage(f *testing.F) {
	for _, seed := range []string{"r.test/pause:3.10", "[::1]:5000/a/b@sha256:" + strings.Repeat("0", 64), "a/b", "r.test/a:b@c", "localhost/a_b__c:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if checkImage(text) != nil {
			return
		}
		host, rest, ok := strings.Cut(text, "/")
		if _, err := portOf(host); err != nil || !ok || !isRegistryHost(host) || strings.ContainsAny(text, " \t\n\"'\\") {
			t.Errorf("%q is taken for a whole reference", text)
		}
		if !strings.ContainsAny(rest, ":@") {
			t.Errorf("%q has neither tag nor digest", text)
		}
	})
}

// FuzzProviderConfig: a patch that is taken sets what its text says, and nothing else.
func FuzzProviderConfig(f *testing.F) {
	for _, seed := range []string{
		"a = 1\nb.c = 'x'", "version = 2\n[plugins.'x.y']\nz = [1, {a = 2}]", "[[a]]\nb = 1", "imports = ['x']", "a = 1979-05-27", "[a]\n", "a = \"c4n4ry", "a = inf",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) { // no document holds it
			return
		}
		raw, err := json.Marshal(map[string]any{"patches": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		doc := containerdtest.ContainerRuntime(t, `{}`)
		doc.Spec.ProviderConfig = raw
		d, violations := Resolve(doc, "linux")
		if len(violations) > 0 {
			for _, v := range violations {
				if v.Message == "" || v.Field == "" {
					t.Errorf("%q: %+v", text, v)
				}
			}
			return
		}
		var tree map[string]any
		if err := toml.Unmarshal([]byte(text), &tree); err != nil {
			t.Fatalf("%q is taken for TOML: %v", text, err)
		}
		for _, r := range releases() {
			settings, _ := d.Settings(r)
			for _, s := range settings {
				var value any = tree
				for _, key := range s.Path {
					table, _ := value.(map[string]any)
					value = table[key]
				}
				if value == nil {
					t.Errorf("%q does not set %s", text, Dotted(s.Path))
				}
			}
		}
	})
}
