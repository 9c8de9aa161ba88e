package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// releases are those that every case is shown for.
func releases() []release {
	return []release{{1, 6, 20}, {1, 7, 24}, {2, 0, 0}, {2, 1, 4}, {2, 3, 7}}
}

// TestCases: a case is a document, and what each release of containerd shall be told.
func TestCases(t *testing.T) {
	t.Parallel()
	cases, err := filepath.Glob("testdata/cases/*/document.yaml")
	if err != nil || len(cases) < 8 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, file := range cases {
		name := filepath.Base(filepath.Dir(file))
		doc := readCase(t, file)
		system := "linux"
		if name == "windows" {
			system = name
		}
		d, violations := resolve(doc, system)
		if len(violations) > 0 {
			t.Errorf("%s: %+v", name, violations)
			continue
		}
		for _, r := range releases() {
			golden(t, fmt.Sprintf("cases/%s/%s.txt", name, r), shown(t, d, r))
		}
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
		list, secret := d.serviceEnvironment()
		fmt.Fprintf(&b, "\n# service environment, secret: %v\n%s\n", secret, masked(strings.Join(list, "\n")))
	}
	b.WriteString("\n# files\n")
	for _, f := range slices.Concat(d.certs(r), d.serviceFiles()) {
		b.WriteString(showFile(t, f))
	}
	return b.String()
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
