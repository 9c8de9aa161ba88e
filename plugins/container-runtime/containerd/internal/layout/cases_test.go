package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/containerdtest"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestCases: a case is a document, and the configuration of each release of containerd, on each system. Where its paths are
// the files of Linux, document.windows.yaml is the same for Windows; the case windows is for that alone.
func TestCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("../../testdata/cases/*/document.yaml")
	if err != nil || len(cases) < 8 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		name := filepath.Base(filepath.Dir(file))
		if name != "windows" {
			renderCase(t, name, "linux", file)
			name += "/windows"
		}
		if own := strings.TrimSuffix(file, ".yaml") + ".windows.yaml"; exists(t, own) {
			file = own
		}
		renderCase(t, name, "windows", file)
	}
}

func exists(t *testing.T, file string) bool {
	t.Helper()
	_, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

func renderCase(t *testing.T, name, system, file string) {
	t.Helper()
	d, violations := settings.Resolve(containerdtest.ReadCase(t, file), system)
	if len(violations) > 0 {
		t.Errorf("%s for %s: %+v", name, system, violations)
		return
	}
	for _, r := range releases() {
		containerdtest.Golden(t, fmt.Sprintf("cases/%s/%s.txt", name, r), shown(t, d, r))
	}
}

// shown is everything that a document becomes for a release. Secrets are ***, and of certificates and keys the kind is
// shown.
func shown(t *testing.T, d settings.Desired, r settings.Release) string {
	t.Helper()
	var b strings.Builder
	desired, violations := d.Settings(r)
	if len(violations) > 0 {
		t.Errorf("%s: %+v", r, violations)
	}
	b.WriteString("# settings\n")
	for _, s := range desired {
		value, err := json.Marshal(s.Value)
		if err != nil {
			t.Fatal(err)
		}
		if s.Secret {
			value = []byte("***")
		} else if strings.Contains(string(value), containerdtest.Canary) {
			t.Errorf("%s is secret and not marked so", settings.Dotted(s.Path))
		}
		fmt.Fprintf(&b, "%s = %s  (%s)\n", settings.Dotted(s.Path), value, s.Field)
	}
	b.WriteString("\n# unsupported\n")
	for _, v := range d.Unsupported(r) {
		fmt.Fprintf(&b, "%s: %s (%s)\n", v.Field, v.Message, v.Hint)
	}
	b.WriteString("\n# warnings\n")
	for _, w := range slices.Concat(d.Warnings, d.Overridden(r)) {
		fmt.Fprintf(&b, "%s: %s\n", w.Field, w.Message)
	}
	if d.OS == "windows" {
		b.WriteString("\n# service environment\n")
		for _, v := range ServiceEnvironment(d).Variables {
			if strings.Contains(v.Value, containerdtest.Canary) {
				t.Errorf("%s is secret and in the open", v.Name)
			}
			fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Value)
		}
	}
	b.WriteString("\n# files\n")
	if d.OS == "windows" {
		b.WriteString(showFile(t, fresh(t, r, desired)))
	}
	for _, f := range slices.Concat(RegistryFiles(d, r), ServiceFiles(d)) {
		b.WriteString(showFile(t, f))
	}
	return b.String()
}

// fresh is the daemon's configuration on Windows where there is none. On Linux, where the paths of Windows lead
// nowhere, the files that are there cannot be looked for: TestConfigure has them.
func fresh(t *testing.T, r settings.Release, desired []settings.Setting) sdk.FileSpec {
	t.Helper()
	m := machinetest.New(t).Machine
	m.Target.OS = "windows"
	var empty [2]*tomledit.Document
	for i := range empty {
		var err error
		if empty[i], err = tomledit.Parse(nil); err != nil {
			t.Fatal(err)
		}
	}
	d := mainDocument{path: settings.PathsOf(m.Target.OS).Config, mode: 0o644, Document: empty[0], theirs: empty[1]}
	now := Current{main: d, layers: []layer{{path: d.path, Document: d.theirs}}}
	c := Configuration{}
	if r.Major == 1 {
		if err := c.inMain(m, now, r, desired); err != nil {
			t.Fatal(err)
		}
		return c.Main
	}
	text, err := renderDropIn(now, r, desired)
	if err != nil {
		t.Fatal(err)
	}
	spec := sdk.FileSpec{Path: settings.PathsOf(m.Target.OS).DropIn, Content: text, Mode: 0o644, Sensitive: anySecret(desired)}
	if spec.Sensitive {
		spec.Mode = 0o600
	}
	return spec
}

func showFile(t *testing.T, f sdk.FileSpec) string {
	t.Helper()
	text := containerdtest.Masked(string(f.Content))
	holds := text != string(f.Content) && (strings.Contains(text, "***") || strings.Contains(text, "KEY"))
	if holds != f.Sensitive || holds != (f.Mode == 0o600) {
		t.Errorf("%s holds secrets: %v; its mode is %o, sensitive %v", f.Path, holds, f.Mode, f.Sensitive)
	}
	return fmt.Sprintf("== %s %04o\n%s", f.Path, f.Mode, text)
}
