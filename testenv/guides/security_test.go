package guides

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/testenv/spec"
)

// TestSecurity: the tests that SECURITY.md names exist, with their cases. It names them as `PACKAGE TestOne, TestTwo/case`.
func TestSecurity(t *testing.T) {
	t.Parallel()
	page := read(t, "SECURITY.md")
	evidence, names := map[string]spec.Evidence{}, 0
	for _, span := range regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(page, -1) {
		pkg, tests, _ := strings.Cut(span[1], " ")
		if !regexp.MustCompile(`\b(Test|Fuzz|Benchmark)[A-Z]`).MatchString(span[1]) {
			continue
		}
		var named spec.Evidence
		for name := range strings.SplitSeq(tests, ", ") {
			named.Tests = append(named.Tests, pkg+" "+name)
		}
		evidence[span[1]], names = named, names+len(named.Tests)
	}
	known := map[string][]spec.TestFile{}
	for _, problem := range spec.Tests(evidence, func(pkg string) (files []spec.TestFile, err error) {
		if known[pkg] == nil {
			known[pkg], err = spec.Source{Root: root}.TestFiles(pkg)
		}
		return known[pkg], err
	}) {
		t.Errorf("SECURITY.md: %s", problem)
	}
	assert.Greater(t, names, 100, "too few tests were checked")
	assert.NotRegexp(t, `(Test|Fuzz|Benchmark)[A-Z]`, regexp.MustCompile("`[^`]*`").ReplaceAllString(page, ""), "a name outside of a code span is not checked")
}
