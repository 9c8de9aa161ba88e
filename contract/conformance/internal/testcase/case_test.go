package testcase

import (
	"encoding/base64"
	"encoding/hex"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
)

const config = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec: {provider: p, password: {value: %s}}\n"

func TestLoadCases(t *testing.T) {
	t.Parallel()
	plain, secret := strings.ReplaceAll(config, "%s", "x"), strings.ReplaceAll(config, "%s", "${canary}")
	for name, tt := range map[string]struct {
		files map[string]string
		says  string // "" is a valid case
	}{
		"only a document": {map[string]string{"config.yaml": plain}, ""},
		"everything": {map[string]string{
			"config.yaml": secret, "README.md": "#", "root/etc/a": "", "expect/etc/b": "",
			"expect.yaml": "# comment\nchanges: [a]\nreboot: AfterRun\nsecrets:\n  - spec.password\nmodes: {etc/b: \"0600\"}\n",
		}, ""},
		"errors":                 {map[string]string{"config.yaml": plain, "expect.yaml": "errors:\n- {code: Precondition}\n"}, ""},
		"an empty expectation":   {map[string]string{"config.yaml": plain, "expect.yaml": "changes: []\n"}, ""},
		"no document":            {map[string]string{"expect.yaml": "changes: []\n"}, "config.yaml"},
		"two documents":          {map[string]string{"config.yaml": plain + "---\n" + strings.Replace(plain, "name: a", "name: b", 1)}, "has 2 documents"},
		"a faulty document":      {map[string]string{"config.yaml": "kind: X\n"}, "a host would refuse"},
		"a foreign file":         {map[string]string{"config.yaml": plain, "expects/x": ""}, "is no file of a case"},
		"a secret without one":   {map[string]string{"config.yaml": plain, "expect.yaml": "secrets: [spec.password]\n"}, "${canary} is in []"},
		"a canary and no secret": {map[string]string{"config.yaml": secret}, `is in ["spec.password.value"]`},
		"an unknown field":       {map[string]string{"config.yaml": plain, "expect.yaml": "# a\nchange: [a]\n"}, "change: unknown field"},
		"a syntax error":         {map[string]string{"config.yaml": plain, "expect.yaml": "# a\nchanges: [a\n"}, "expect.yaml:"},
		"an unknown code":        {map[string]string{"config.yaml": plain, "expect.yaml": "errors: [{code: Internal}]\n"}, "errors[0].code"},
		"an unknown reboot":      {map[string]string{"config.yaml": plain, "expect.yaml": "reboot: Now\n"}, "reboot: must be"},
		"a mode in decimal":      {map[string]string{"config.yaml": plain, "expect.yaml": "modes: {a: \"999\"}\n"}, "modes.a"},
		"refused with changes": {map[string]string{
			"config.yaml": plain, "expect.yaml": "errors: [{code: Retry}]\nchanges: [a]\n",
		}, "changes: a refused document has none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			casetest.Put(t, filepath.Join(dir, "one"), tt.files)
			cases, err := LoadAll(dir)
			switch {
			case tt.says == "" && (err != nil || len(cases) != 1 || cases[0].Name != "one"):
				t.Errorf("%v, %v", cases, err)
			case tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)):
				t.Errorf("error %v, want one with %q", err, tt.says)
			}
		})
	}
	if _, err := LoadAll(t.TempDir()); err == nil || !strings.Contains(err.Error(), "no case") {
		t.Errorf("no cases: %v", err)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	word := NewCanary()
	found := TracesOf(word)
	for _, around := range []string{"", "a", "ab", "abc", "{\"password\": {\"value\": \""} {
		text := around + word + around
		for name, shown := range map[string]string{
			"plain": text, "hexadecimal": hex.EncodeToString([]byte(text)),
			"base64":          base64.StdEncoding.EncodeToString([]byte(text)),
			"base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(text)),
		} {
			if !found.In([]byte("x" + shown)) {
				t.Errorf("%s after %q is not found", name, around)
			}
		}
	}
	if found.In([]byte(NewCanary())) || found.In([]byte(base64.StdEncoding.EncodeToString([]byte(NewCanary())))) {
		t.Error("another word is taken for this one")
	}
}
