package layout

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
)

// TestHostsFileSaysWhatTheDocumentSays, to a decoder of TOML and to containerd's own way to find the order of hosts.
func TestHostsFileSaysWhatTheDocumentSays(t *testing.T) {
	t.Parallel()
	d := wanted(t, "linux", `{"registries":{"r.test":{"server":"https://s.test/x","headers":{"x-a":{"value":"s \"\\é"}},"mirrors":[
		{"url":"https://z.test","headers":{"X-B":{"value":"z"}},"capabilities":["pull"]},{"url":"https://a.test","skipVerify":true},
		{"url":"http://m.test","overridePath":true,"dialTimeout":"2s"}]}}}`)
	files := RegistryFiles(d, settings.Release{Major: 2, Minor: 1, Patch: 0})
	if len(files) != 1 || files[0].Path != "/etc/containerd/certs.d/r.test/hosts.toml" {
		t.Fatalf("%v", files)
	}
	var got map[string]any
	if err := toml.Unmarshal(files[0].Content, &got); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"header":{"X-A":"s \"\\é"},"host":{"http://m.test":{"dial_timeout":"2s","override_path":true},` +
		`"https://a.test":{"skip_verify":true},"https://z.test":{"capabilities":["pull"],"header":{"X-B":"z"}}},"server":"https://s.test/x"}`
	if string(text) != want {
		t.Errorf("got %s\nwant %s", text, want)
	}
	if order := hostOrder(files[0].Content); !slices.Equal(order, []string{"https://z.test", "https://a.test", "http://m.test"}) {
		t.Errorf("the order is %q", order)
	}
}

// hostOrder is how containerd 2.x finds it (getSortedHosts): the tables below host, each once.
func hostOrder(text []byte) []string {
	var order []string
	p := unstable.Parser{}
	p.Reset(text)
	for p.NextExpression() {
		if p.Expression().Kind != unstable.Table {
			continue
		}
		var parts []string
		for key := p.Expression().Key(); key.Next(); {
			parts = append(parts, string(key.Node().Data))
		}
		if len(parts) > 1 && parts[0] == "host" && (len(order) == 0 || order[len(order)-1] != parts[1]) {
			order = append(order, parts[1])
		}
	}
	return order
}

// TestMirrorOnly: nothing in the file leads to the registry itself.
func TestMirrorOnly(t *testing.T) {
	t.Parallel()
	for _, r := range releases() {
		d := wanted(t, "linux", `{"registries":{"origin.test":{"server":"https://m.test","mirrors":[{"url":"https://n.test"},{"url":"https://m.test/","ca":"@CA@"}]},
			"_default":{"server":"https://m.test"}}}`)
		for _, f := range RegistryFiles(d, r) {
			_, text, _ := strings.Cut(string(f.Content), "\n")
			if strings.Contains(text, "origin.test") {
				t.Errorf("%s leads to the origin:\n%s", f.Path, text)
			}
			if path.Base(f.Path) != "hosts.toml" {
				continue
			}
			var got struct {
				Server string                    `toml:"server"`
				CA     string                    `toml:"ca"`
				Hosts  map[string]map[string]any `toml:"host"`
			}
			if err := toml.Unmarshal(f.Content, &got); err != nil || got.Server != "https://m.test" {
				t.Errorf("%s: the server is %q, %v", f.Path, got.Server, err)
			}
			if named := strings.Contains(f.Path, "origin.test"); named && (len(got.Hosts) != 1 || got.CA == "") || r.Major == 1 && len(got.Hosts) == 0 {
				t.Errorf("%s for %s:\n%s", f.Path, r, f.Content)
			}
		}
	}
}

func TestHostDirectories(t *testing.T) {
	t.Parallel()
	for host, want := range map[string][2]string{
		"r.test": {"r.test", "r.test"}, "r.test:5000": {"r.test_5000_", "r.test_5000_"}, "[::1]": {"[::1]", "[1]"},
		"[fe80::1]:80": {"[fe80::1]_80_", "[fe801]_80_"}, settings.AnyHost: {settings.AnyHost, settings.AnyHost},
	} {
		if got := settings.PathsOf("linux").HostDirectory(host); got != "/etc/containerd/certs.d/"+want[0] {
			t.Errorf("%s: %s", host, got)
		}
		if got := settings.PathsOf("windows").HostDirectory(host); got != `C:\Program Files\containerd\certs.d\`+want[1] {
			t.Errorf("%s: %s", host, got)
		}
	}
}

// TestQuoting: what systemd reads is in systemd.syntax(7); these forms were read back from /proc/PID/environ of a service.
func TestQuoting(t *testing.T) {
	t.Parallel()
	const nasty = "a%b$c\\d\"e'f`g h"
	if got := quoteValue(nasty); got != `"a%b\$c\\d\"e'f\`+"`"+`g h"` {
		t.Errorf("X=%s", got)
	}
	var back struct{ A string }
	if err := toml.Unmarshal([]byte("A = "+tomledit.Quoted(nasty+"\x01é\x7f\n")), &back); err != nil || back.A != nasty+"\x01é\x7f\n" {
		t.Errorf("TOML: %q, %v", back.A, err)
	}
}

// TestNoUnitFilesForNothing: what is not asked for has no file.
func TestNoUnitFilesForNothing(t *testing.T) {
	t.Parallel()
	d := wanted(t, "linux", `{"logLevel":"info","oomScore":-5}`)
	if files := append(ServiceFiles(d), RegistryFiles(d, settings.Release{Major: 2, Minor: 1, Patch: 0})...); len(files) > 0 {
		t.Errorf("files %v", files)
	}
	if e := ServiceEnvironment(d); e != nil {
		t.Errorf("an environment on Linux: %v", e)
	}
}

func TestBaseSpec(t *testing.T) {
	t.Parallel()
	const defaults = `{"ociVersion":"1.2.0","process":{"user":{"uid":0},"rlimits":[{"type":"RLIMIT_NOFILE","hard":1024,"soft":1024}]},"linux":{"big":18446744073709551615,"text":"<&>"}}`
	got, err := baseSpec([]byte(defaults), map[string]v1alpha1.Rlimit{
		"RLIMIT_MEMLOCK": {Soft: 1<<64 - 1, Hard: 1<<64 - 1}, "RLIMIT_CORE": {Hard: 5},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var spec any
	decoder := json.NewDecoder(strings.NewReader(string(got)))
	decoder.UseNumber()
	if err := decoder.Decode(&spec); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(spec)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"linux":{"big":18446744073709551615,"text":"\u003c\u0026\u003e"},"ociVersion":"1.2.0","process":{"rlimits":[` +
		`{"hard":5,"soft":0,"type":"RLIMIT_CORE"},{"hard":18446744073709551615,"soft":18446744073709551615,"type":"RLIMIT_MEMLOCK"}],"user":{"uid":0}}}`
	if string(text) != want {
		t.Errorf("got %s", text)
	}
	for _, bad := range []string{"", "[]", "c4n4ry", `{"ociVersion":"1.2.0"}`, `{"process":{}}`, `{"ociVersion":1,"process":{}}`} {
		if _, err := baseSpec([]byte(bad), nil, nil); err == nil || strings.Contains(err.Error(), containerdtest.Canary) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
