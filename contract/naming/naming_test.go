package naming_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/naming"
)

func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/vectors.txt")
	if err != nil {
		t.Fatal(err)
	}
	vectors := 0
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 3 {
			t.Fatalf("a vector is `kind provider binary`, not %q", line)
		}
		vectors++
		kind, provider, want := fields[0], fields[1], fields[2]
		if got := naming.Binary(kind, provider); got != want {
			t.Errorf("Binary(%s, %s) = %s, want %s", kind, provider, got, want)
		}
		if got := naming.Prefix(kind) + provider; got != want {
			t.Errorf("Prefix(%s) + %s = %s, want %s", kind, provider, got, want)
		}
		for _, goos := range []string{"linux", "windows"} {
			if !naming.IsPlugin(goos, naming.File(goos, want)) {
				t.Errorf("IsPlugin(%s, %s) = false", goos, naming.File(goos, want))
			}
		}
	}
	if vectors < 20 {
		t.Fatalf("only %d vectors were read", vectors)
	}
}

func TestFile(t *testing.T) {
	t.Parallel()
	if got := naming.File("windows", "machineadm-x-plugin-y"); got != "machineadm-x-plugin-y.exe" {
		t.Errorf("on windows: %s", got)
	}
	if got := naming.File("linux", "machineadm-x-plugin-y"); got != "machineadm-x-plugin-y" {
		t.Errorf("on linux: %s", got)
	}
}

func TestIsPlugin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		goos, file string
		want       bool
	}{
		{"linux", "machineadm-sysctl-plugin-procfs", true},
		{"linux", "machineadm-remote-configuration-provider-file", true},
		{"linux", "machineadm-plugin-encryption-provider-file", true},
		{"linux", "machineadm-foo-plugin-" + strings.Repeat("x", 63), true},
		{"linux", "machineadm-foo-plugin-" + strings.Repeat("x", 64), false},
		{"linux", "machineadm-foo-plugin-" + strings.Repeat("x", 50) + "-plugin-" + strings.Repeat("x", 63), true},
		{"linux", "machineadm", false},
		{"linux", "machineadm-sysctl-plugin-", false},
		{"linux", "machineadm--plugin-procfs", false},
		{"linux", "machineadm-plugin-procfs", false},
		{"linux", "machineadm-sysctl-plugin-procfs-", false},
		{"linux", "machineadm-sysctl-plugin-procfs.bak", false},
		{"linux", "machineadm-sysctl-plugin-procfs.exe", false},
		{"linux", "machineadm-sysctl-plugin-a/b", false},
		{"linux", "machineadm-../x-plugin-y", false},
		{"linux", "machineadm-Sysctl-plugin-procfs", false},
		{"linux", "machineadm-foo--bar-plugin-x", false},
		{"linux", "machineadm-3foo-plugin-x", false},
		{"linux", "x-machineadm-sysctl-plugin-procfs", false},
		{"linux", "machineadm-remote-configuration-provider-", false},
		{"linux", "", false},
		{"windows", "machineadm-timesync-plugin-w32time.exe", true},
		{"windows", "machineadm-timesync-plugin-w32time", false},
		{"windows", "machineadm-timesync-plugin-w32time.EXE", false},
		{"windows", ".exe", false},
	} {
		if got := naming.IsPlugin(test.goos, test.file); got != test.want {
			t.Errorf("IsPlugin(%s, %q) = %v", test.goos, test.file, got)
		}
	}
}

func TestValid(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		what     string
		valid    func(string) error
		good     []string
		bad      []string
		mustName string
	}{
		{
			"kind", naming.ValidKind,
			[]string{"A", "Sysctl", "HTTPProxy", "S3", "A" + strings.Repeat("b", 62)},
			[]string{"", "sysctl", "3S", "Foo-Bar", "Foo.Bar", "Foo/Bar", "Foo Bar", "Föo", "Foo\n", "\x00", "A" + strings.Repeat("b", 63)},
			"CamelCase",
		},
		{
			"provider", naming.ValidProvider,
			[]string{"a", "0", "a-b", "a--b", "w32time", strings.Repeat("x", 63)},
			[]string{"", "-", "a-", "-a", "A", "a.b", "a/b", "../x", "a b", "a\n", "ä", strings.Repeat("x", 64)},
			"a-z, 0-9 and -",
		},
		{
			"name", naming.ValidName,
			[]string{"a", "site-time", "a.b", "a.b-c.0", strings.Repeat(strings.Repeat("x", 62)+".", 4) + "x"},
			[]string{"", ".", "a.", ".a", "a..b", "a.-b", "A", "a_b", "a/b", "a\n", strings.Repeat("x", 64), strings.Repeat("a.", 126) + "aa"},
			"DNS subdomain",
		},
	} {
		for _, s := range test.good {
			if err := test.valid(s); err != nil {
				t.Errorf("%s %q is refused: %v", test.what, s, err)
			}
		}
		for _, s := range test.bad {
			err := test.valid(s)
			if err == nil {
				t.Errorf("%s %q is accepted", test.what, s)
			} else if !strings.Contains(err.Error(), test.mustName) {
				t.Errorf("%s %q: the error does not say the rule: %v", test.what, s, err)
			}
		}
	}
}

func TestSearchDirectories(t *testing.T) {
	t.Parallel()
	for goos, want := range map[string][]string{
		"linux":   {"/usr/local/libexec/machineadm", "/usr/libexec/machineadm", "/opt/machineadm/plugins"},
		"windows": {`C:\Program Files\machineadm\plugins`},
		"plan9":   nil,
	} {
		if got := naming.SearchDirectories(goos); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q", goos, got)
		}
	}
}

// FuzzBinary: a name never leaves [a-z0-9-], so it cannot leave its directory either, and it is recognized as a plugin.
func FuzzBinary(f *testing.F) {
	for _, seed := range [][2]string{
		{"Sysctl", "procfs"},
		{"RemoteConfig", "file"},
		{"EncryptedConfig", "a-plugin-b"},
		{"HTTPProxy", "x"},
		{"../A", "b"},
		{"A", "../b"},
		{"A", "b/../c"},
		{"A\x00", "b\\c"},
		{"Ä", "ü"},
		{"", ""},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, kind, provider string) {
		name := naming.Binary(kind, provider)
		if valid := naming.ValidKind(kind) == nil && naming.ValidProvider(provider) == nil; valid != (name != "") {
			t.Fatalf("Binary(%q, %q) = %q, valid: %v", kind, provider, name, valid)
		}
		if name == "" {
			return
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(name) > 255-len(".exe") {
			t.Fatalf("Binary(%q, %q) = %q", kind, provider, name)
		}
		for _, goos := range []string{"linux", "windows"} {
			if got, ok := naming.Trim(goos, naming.File(goos, name)); !ok || got != name {
				t.Fatalf("Trim(%s) of %q = %q, %v", goos, name, got, ok)
			}
		}
	})
}
