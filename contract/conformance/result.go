package conformance

import (
	"fmt"
	"strings"
	"time"
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
func (r result) export(c *Case, check Check, since time.Time, starts int) Result {
	out := Result{
		Case: c.Name, Check: check.Name, Status: r.status, Clause: check.Clause, Reason: r.reason,
		Seconds: time.Since(since).Round(time.Millisecond).Seconds(), Starts: starts,
	}
	if r.status == Fail {
		out.Clause, out.Reason, out.Expected, out.Cause = r.clause, r.got, r.expected, r.cause
	}
	return out
}
