package conformance

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Verdict is what a check says about a case.
type Verdict string

// The verdicts.
const (
	Pass          Verdict = "pass"
	Fail          Verdict = "fail"
	NotApplicable Verdict = "not applicable" // nothing was judged, for the reason given
)

// Result is one check of one case.
type Result struct {
	Case  string `json:"case"`
	Check string `json:"check"`
	// Clause names clauses of SPEC.md, parted by commas: what a failure violates, where the check knows it, else all that
	// the check is about.
	Clause  string  `json:"clause"`
	Verdict Verdict `json:"verdict"`
	// Reason is why it is not a pass: for people, of several lines perhaps.
	Reason string `json:"reason,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// Explain is the reason of a failure, and then what it violates. A plugin that does not start violates none of the
// check's clauses.
func (r Result) Explain() string {
	for _, check := range Checks() {
		if check.Name == r.Check && strings.Contains(check.Clause, r.Clause) {
			return fmt.Sprintf("%s\nviolates SPEC %s; the rule: %s", r.Reason, r.Clause, check.Says)
		}
	}
	return fmt.Sprintf("%s\nviolates SPEC %s", r.Reason, r.Clause)
}

// finding is a verdict and its reason.
type finding struct {
	verdict Verdict
	reason  string
	clause  string // that a failure violates; empty: any of the check
}

// of says which clause a failure violates, where nothing closer to it has said so.
func (f finding) of(clause string) finding {
	if f.clause == "" && f.verdict == Fail {
		f.clause = clause
	}
	return f
}

func passed() finding { return finding{verdict: Pass} }

func failed(format string, args ...any) finding {
	return finding{verdict: Fail, reason: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) finding {
	return finding{verdict: NotApplicable, reason: fmt.Sprintf(format, args...)}
}

func (f finding) result(c *Case, check Check, since time.Time) Result {
	return Result{
		Case: c.Name, Check: check.Name, Clause: cmp.Or(f.clause, check.Clause),
		Verdict: f.verdict, Reason: f.reason, Seconds: time.Since(since).Round(time.Millisecond).Seconds(),
	}
}
