package conformance

import (
	"testing"

	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
)

// Run runs every check on a plugin binary with a directory of cases. Each case is a parallel sub-test, and each check
// that applies to it a sub-test of that. A check that is not applicable is logged with the reason, because a skipped
// sub-test would hide among hundreds.
func Run(t *testing.T, binary, cases string) {
	t.Helper()
	loaded, err := LoadCases(cases)
	if err != nil {
		t.Fatal(err)
	}
	Suite{Binary: binary, Cases: loaded}.Test(t)
}

// Test is Run for a suite with other settings. Parallel has no effect.
func (s Suite) Test(t *testing.T) {
	t.Helper()
	s.shared = &rig.Shared{}
	if err := s.Startable(); err != nil {
		t.Fatal(err)
	}
	for i, c := range s.Cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			s.runCase(t, i)
		})
	}
}

func (s Suite) runCase(t *testing.T, index int) {
	t.Helper()
	r, err := s.newRunner(t.Context(), index)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.End(); err != nil {
			t.Error(err)
		}
	}()
	for _, check := range s.checks(r.Case) {
		got, err := run(t.Context(), r, check)
		if err == nil && got.Status == NotApplicable {
			t.Logf("%s is not applicable: %s", check.Name, got.Reason)
			continue
		}
		t.Run(check.Name, func(t *testing.T) {
			switch {
			case err != nil:
				t.Fatal(err)
			case got.Status == Fail:
				t.Errorf("%s", got.Explain())
			}
		})
	}
}
