package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// releases are those that every case is shown for.
func releases() []release {
	return []release{{1, 6, 20}, {1, 7, 24}, {2, 0, 0}, {2, 1, 4}, {2, 3, 7}}
}

// TestCases: a case is a document, and what each release of containerd shall be told, on each system. Where its paths are
// those of Linux, document.windows.yaml is the same for Windows; the case windows is for that alone.
func TestCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/cases/*/document.yaml")
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
	d, violations := resolve(readCase(t, file), system)
	if len(violations) > 0 {
		t.Errorf("%s for %s: %+v", name, system, violations)
		return
	}
	for _, r := range releases() {
		golden(t, fmt.Sprintf("cases/%s/%s.txt", name, r), shown(t, d, r))
	}
}

func readCase(t *testing.T, file string) v1alpha1.ContainerRuntime {
	t.Helper()
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }() // it was only read
	stream, err := document.Decode(file, in)
	if err != nil || len(stream.Errors) > 0 || len(stream.Documents) != 1 {
		t.Fatalf("%s: %+v, %v", file, stream.Errors, err)
	}
	data, err := stream.Documents[0].JSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc v1alpha1.ContainerRuntime
	if violations := document.Unmarshal([]byte(filled(t, string(data))), &doc); len(violations) > 0 {
		t.Fatalf("%s: %+v", file, violations)
	}
	return doc
}

// shown is everything that a document becomes for a release. Secrets are ***, and of certificates and keys the kind is
// shown.
func shown(t *testing.T, d desired, r release) string {
	t.Helper()
	var b strings.Builder
	settings, violations := d.settings(r)
	if len(violations) > 0 {
		t.Errorf("%s: %+v", r, violations)
	}
	b.WriteString("# settings\n")
	for _, s := range settings {
		value, err := json.Marshal(s.value)
		if err != nil {
			t.Fatal(err)
		}
		if s.secret {
			value = []byte("***")
		} else if strings.Contains(string(value), canary) {
			t.Errorf("%s is secret and not marked so", dotted(s.path))
		}
		fmt.Fprintf(&b, "%s = %s  (%s)\n", dotted(s.path), value, s.field)
	}
	b.WriteString("\n# unsupported\n")
	for _, v := range d.unsupported(r) {
		fmt.Fprintf(&b, "%s: %s (%s)\n", v.Field, v.Message, v.Hint)
	}
	b.WriteString("\n# warnings\n")
	for _, w := range slices.Concat(d.warnings, d.overridden(r)) {
		fmt.Fprintf(&b, "%s: %s\n", w.Field, w.Message)
	}
	if d.os == "windows" {
		b.WriteString("\n# service environment\n")
		for _, v := range d.serviceEnvironment().Variables {
			if strings.Contains(v.Value, canary) {
				t.Errorf("%s is secret and in the open", v.Name)
			}
			fmt.Fprintf(&b, "%s=%s\n", v.Name, v.Value)
		}
	}
	b.WriteString("\n# files\n")
	if d.os == "windows" {
		b.WriteString(showFile(t, fresh(t, r, settings)))
	}
	for _, f := range slices.Concat(d.certs(r), d.serviceFiles()) {
		b.WriteString(showFile(t, f))
	}
	return b.String()
}

// fresh is the daemon's configuration on Windows where nobody has written one. On Linux, where the paths of Windows lead
// nowhere, the files that are there cannot be looked for: TestConfigure has them.
func fresh(t *testing.T, r release, settings []setting) sdk.FileSpec {
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
	d := mainDocument{path: mainFile(m), mode: 0o644, Document: empty[0], theirs: empty[1]}
	now := present{main: d, layers: []layer{{path: d.path, Document: d.theirs}}}
	c, i := configuration{}, installation{release: r, config: d.path}
	settings = plain(settings)
	if r.major() == 1 {
		if err := c.inMain(m, now, i, settings); err != nil {
			t.Fatal(err)
		}
		return c.main
	}
	text, err := renderDropIn(now, i, settings)
	if err != nil {
		t.Fatal(err)
	}
	spec := sdk.FileSpec{Path: dropInFile(m), Content: text, Mode: 0o644, Sensitive: anySecret(settings)}
	if spec.Sensitive {
		spec.Mode = 0o600
	}
	return spec
}

func showFile(t *testing.T, f sdk.FileSpec) string {
	t.Helper()
	text := masked(string(f.Content))
	holds := text != string(f.Content) && (strings.Contains(text, "***") || strings.Contains(text, "KEY"))
	if holds != f.Sensitive || holds != (f.Mode == 0o600) {
		t.Errorf("%s holds secrets: %v; its mode is %o, sensitive %v", f.Path, holds, f.Mode, f.Sensitive)
	}
	return fmt.Sprintf("== %s %04o\n%s", f.Path, f.Mode, text)
}

func masked(text string) string {
	text = regexp.MustCompile(`(?s)-----BEGIN ([A-Z ]+)-----.*?-----END [A-Z ]+-----`).ReplaceAllString(text, "($1)")
	return regexp.MustCompile(canary+`[A-Za-z0-9-]*`).ReplaceAllString(text, "***")
}
