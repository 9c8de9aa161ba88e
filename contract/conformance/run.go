package conformance

import (
	"testing"
)

// Run judges a plugin binary by a directory of cases: each case is a sub-test, and each check that is applicable to it is
// one of that. The others are logged with their reason: a sub-test that passed or was skipped would say too much, and a
// list of hundreds of skips hides the one that matters.
func Run(t *testing.T, binary, cases string) {
	t.Helper()
	loaded, err := LoadCases(cases)
	if err != nil {
		t.Fatal(err)
	}
	suite := Suite{Binary: binary, Cases: loaded}
	if err := suite.Startable(); err != nil {
		t.Fatal(err)
	}
	for i, c := range loaded {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			suite.runCase(t, i)
		})
	}
}

func (s Suite) runCase(t *testing.T, index int) {
	t.Helper()
	tried, err := s.begin(index)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tried.end(); err != nil {
			t.Error(err)
		}
	}()
	for _, check := range s.checks() {
		result, err := tried.judge(t.Context(), check)
		if err == nil && result.Verdict == NotApplicable {
			t.Logf("%s is not applicable: %s", check.Name, result.Reason)
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			switch {
			case err != nil:
				t.Fatal(err)
			case result.Verdict == Fail:
				t.Errorf("%s", result.Explain())
			}
		})
	}
}
