// Package cloudtest has what the tests of sources and key providers share.
package cloudtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Canary is used as every secret of a document. No error has it.
const Canary = "c4n4ry-of-the-document"

// Document returns a document of a kind with this spec, as JSON.
func Document(t testing.TB, kind string, spec any) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.APIVersion, "kind": kind, "metadata": map[string]any{"name": "a"}, "spec": spec,
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Violations compares the violations of documents with testdata/violations.golden, or with update renews the file. A line that
// begins with { is the spec of a document, in which CANARY is replaced by a secret.
func Violations(t *testing.T, update bool, kind string, validate func(doc []byte) error) {
	t.Helper()
	const file = "testdata/violations.golden"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "{") {
			continue
		}
		fmt.Fprint(&got, line)
		err := validate(Document(t, kind, json.RawMessage(strings.ReplaceAll(line, "CANARY", Canary))))
		if err == nil {
			continue
		}
		for _, v := range pluginv1.AsError(err).Violations {
			fmt.Fprintf(&got, "  %s: %s (%s)\n", v.Field, v.Message, v.Hint)
		}
	}
	switch {
	case strings.Contains(got.String(), Canary):
		t.Error("a violation has a value of the document")
	case update:
		if err := os.WriteFile(file, []byte(got.String()), 0o644); err != nil { //nolint:gosec // a golden file
			t.Fatal(err)
		}
	case got.String() != string(text):
		t.Errorf("%s differs; -update renews it. Got:\n%s", file, got.String())
	}
}

// WithProxy runs tests with a proxy in their environment, which net/http reads once. No request to this machine uses it.
func WithProxy(m *testing.M) int {
	if err := os.Setenv("HTTP_PROXY", "http://127.0.0.1:1"); err != nil { //nolint:forbidigo // net/http reads it once in a process
		panic(err) // of a constant
	}
	return m.Run()
}

// NoProxy requires that ask, which asks a metadata service, does not use the proxy of WithProxy. The address of the service is one
// to which the kernel connects nothing.
func NoProxy(t *testing.T, ask func(metadata string) error) {
	t.Helper()
	const metadata = "http://224.0.0.1"
	control, err := http.NewRequestWithContext(t.Context(), http.MethodGet, metadata, nil)
	if err != nil {
		t.Fatal(err)
	}
	if proxy, err := http.ProxyFromEnvironment(control); err != nil || proxy == nil {
		t.Fatalf("the environment has no proxy for that address: %v", err)
	}
	if err := ask(metadata); err == nil || !strings.Contains(err.Error(), "224.0.0.1:80 cannot be reached: ") {
		t.Errorf("%v, want that the metadata service itself cannot be reached", err)
	}
}
