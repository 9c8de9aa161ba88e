package conformance

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance/internal/casetest"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

// TestExampleOfACase loads the case of CaseFormat.
func TestExampleOfACase(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	content := func(example string) string {
		_, text, _ := strings.Cut(example, "\n")
		return strings.ReplaceAll(text, "    ", "")
	}
	casetest.Put(t, filepath.Join(dir, "token"), map[string]string{
		"config.yaml": content(exampleConfig), "expect.yaml": content(exampleExpect), "expect/etc/app/token": "${canary}\n",
	})
	cases, err := LoadCases(dir)
	require.NoError(t, err)
	assert.Equal(t, []string{"spec.token"}, cases[0].files.Expect.Secrets)
}

// TestCaseFormatIsComplete requires every file of a case and every field of expect.yaml in CaseFormat.
func TestCaseFormatIsComplete(t *testing.T) {
	t.Parallel()
	var names []string
	for _, of := range []reflect.Type{reflect.TypeFor[testcase.Expectation](), reflect.TypeFor[testcase.ExpectedError]()} {
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			names = append(names, name)
		}
	}
	for _, name := range append(names, testcase.CaseFiles()...) {
		assert.Regexp(t, `(?m)^ +`+name+`/? +\S`, CaseFormat)
	}
	for _, code := range testcase.Codes() {
		assert.Contains(t, CaseFormat, code)
	}
}
