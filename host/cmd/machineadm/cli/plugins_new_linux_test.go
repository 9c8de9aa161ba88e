package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
)

func TestPluginsNew(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := filepath.Join(dir, "new")
	got := execute(t, nil, "plugins", "new", "LoginBanner", "--provider", "issue", "--group", "acme.example/v1", "--dir", at)
	if got.code != report.ExitOK || got.errOut != "" {
		t.Fatalf("%+v", got)
	}
	for line := range strings.Lines(got.out) {
		name := strings.TrimPrefix(strings.TrimSpace(line), "next steps: ")
		if !exists(t, name) {
			t.Errorf("%q does not exist", name)
		}
	}
	data, err := os.ReadFile(filepath.Join(at, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(data), "module acme.example/machineadm-login-banner-plugin-issue\n") {
		t.Errorf("go.mod:\n%s", data)
	}
	for name, test := range map[string]struct {
		args []string
		says string
	}{
		"again":                 {[]string{"LoginBanner", "--provider", "issue", "--dir", at}, at + " already exists"},
		"no KIND":               {[]string{"--provider", "issue"}, "KIND is missing"},
		"two":                   {[]string{"A", "B", "--provider", "issue"}, "takes one KIND, not 2"},
		"no provider":           {[]string{"LoginBanner"}, "--provider is missing"},
		"a bad kind":            {[]string{"../x", "--provider", "issue"}, "KIND must be CamelCase"},
		"a bad provider":        {[]string{"LoginBanner", "--provider", "../x"}, "--provider must consist of"},
		"an empty dir":          {[]string{"LoginBanner", "--provider", "issue", "--dir", ""}, "--dir has an empty value"},
		"nowhere":               {[]string{"LoginBanner", "--provider", "issue", "--dir", filepath.Join(dir, "none", "x")}, "none is not a directory"},
		"own kind with --group": {[]string{"Sysctl", "--provider", "x", "--group", "acme.example/v1", "--dir", filepath.Join(dir, "x")}, "leave out --group"},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, nil, append([]string{"plugins", "new"}, test.args...)...)
			if got.code != report.ExitUsage || !strings.Contains(got.errOut, test.says) || !strings.Contains(got.errOut, "hint: ") || got.out != "" {
				t.Errorf("want %q: %+v", test.says, got)
			}
		})
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
