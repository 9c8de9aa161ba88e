package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

// Status is the result of one check of one case.
type Status string

// The statuses.
const (
	Pass          Status = rig.Pass
	Fail          Status = rig.Fail
	NotApplicable Status = rig.NotApplicable // the check says nothing about the case, for the reason given
)

// Result is one check of one case. All of its strings are for people; they may have several lines.
type Result struct {
	Case   string `json:"case"`
	Check  string `json:"check"`
	Status Status `json:"status"`
	// Clause names clauses of SPEC.md, separated by commas: those that a finding violates, else all of the check.
	Clause string `json:"clause"`
	// Reason is what the plugin did, for a finding, or why the check is not applicable.
	Reason string `json:"reason,omitempty"`
	// Expected is what the plugin has to do instead, and Cause the likely cause, both for a finding only.
	Expected string `json:"expected,omitempty"`
	Cause    string `json:"cause,omitempty"`
	// Seconds is the duration of the check, and Starts the number of plugin processes that it started.
	Seconds float64 `json:"seconds"`
	Starts  int     `json:"starts"`
}

// Explain returns a finding as text: what came, what was expected, the likely cause, and the clause with the rule of the
// check.
func (r Result) Explain() string {
	text := fmt.Sprintf("%s\nexpected: %s\nlikely cause: %s\nviolates SPEC %s", r.Reason, r.Expected, r.Cause, r.Clause)
	for _, check := range Checks() {
		if check.Name == r.Check && strings.Contains(check.Clause, r.Clause) { // not for a plugin that does not start
			text += "; the rule: " + check.Says
		}
	}
	return text
}

// export adds the names of the case and the check.
func export(r rig.Result, c *testcase.Case, check Check, since time.Time, starts int) Result {
	out := Result{
		Case: c.Name, Check: check.Name, Status: Status(r.Status), Clause: check.Clause, Reason: r.Reason,
		Seconds: time.Since(since).Round(time.Millisecond).Seconds(), Starts: starts,
	}
	if r.Status == rig.Fail {
		out.Clause, out.Reason, out.Expected, out.Cause = r.Clause, r.Got, r.Expected, r.Cause
	}
	return out
}
