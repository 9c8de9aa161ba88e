package outside

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/require"
)

// TestSkeleton: what machineadm plugins new writes builds and passes the kit by what its own README says, and the host
// applies its document.
func TestSkeleton(t *testing.T) {
	t.Parallel()
	require.Linux(t)
	bash := require.Tool(t, "bash")
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	host := filepath.Join(t.TempDir(), "machineadm")
	run(t, root, nil, "go", "build", "-o", host, "./host/cmd/machineadm")
	const always = "a new kind" // is built for every make test
	type skeleton struct {
		args   []string
		binary string
		file   string // written by the plugin, if it is complete and writes one
		passes string // a check of the kit
	}
	skeletons := map[string]skeleton{
		always: {
			args:   []string{"LoginBanner", "--provider", "issue"},
			binary: "machineadm-login-banner-plugin-issue", file: "etc/login-banner.conf", passes: "change/outcome",
		},
		// True and 3com would not be texts in YAML, were they not in quotes.
		"a new kind of a vendor": {
			args:   []string{"True", "--provider", "3com", "--group", "acme.example/v2alpha1", "--module", "git.acme.example/node/true"},
			binary: "machineadm-true-plugin-3com", file: "etc/true.conf", passes: "change/outcome",
		},
		"a source": {
			args:   []string{"RemoteConfig", "--provider", "shelf"},
			binary: "machineadm-remote-configuration-provider-shelf", passes: "fetch/object",
		},
		"a key provider": {
			args:   []string{"EncryptedConfig", "--provider", "3"},
			binary: "machineadm-plugin-encryption-provider-3", passes: "passphrase/object",
		},
	}
	for _, kind := range v1alpha1.MachineKinds() {
		skeletons["another provider of "+kind] = skeleton{
			args: []string{kind, "--provider", "dropin"}, binary: naming.Binary(kind, "dropin"), passes: "not-yet/outcome",
		}
	}
	for name, test := range skeletons {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name != always {
				require.Tier(t, require.System)
			}
			dir := t.TempDir()
			run(t, dir, nil, host, append([]string{"plugins", "new"}, test.args...)...)
			module := filepath.Join(dir, test.binary)
			for _, line := range commands(t, filepath.Join(module, "README.md")) {
				console(t, bash, module, checkout, line)
			}
			run(t, module, offline(), "go", "vet", "./...")
			t.Run("windows", func(t *testing.T) { vetForWindows(t, module) })
			if out := run(t, module, offline(), "go", "test", "-count=1", "-v", "."); !strings.Contains(out, "--- PASS: TestConformance/"+test.passes) {
				t.Errorf("the kit checked nothing:\n%s", out)
			}
			if test.file == "" {
				return
			}
			image := filepath.Join(dir, "image")
			if err := os.Mkdir(image, 0o755); err != nil {
				t.Fatal(err)
			}
			cases := filepath.Join(module, "testdata", "conformance", "change")
			run(t, dir, nil, host, "apply", "--plugin-dir", module, "--root", image, "--path", filepath.Join(cases, "config.yaml"))
			got, err := os.ReadFile(filepath.Join(image, filepath.FromSlash(test.file)))
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(filepath.Join(cases, "expect", filepath.FromSlash(test.file)))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s is\n%s\nwant\n%s", test.file, got, want)
			}
		})
	}
}

// commands are the lines of a page that are to be typed.
func commands(t *testing.T, page string) []string {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(string(data)) {
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			lines = append(lines, strings.TrimSpace(typed))
		}
	}
	if len(lines) != 4 { // one of them because machineadm comes from a checkout
		t.Fatalf("%s has the commands %q", page, lines)
	}
	return lines
}
