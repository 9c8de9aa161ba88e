package conformance

import (
	"fmt"
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
	Case    string  `json:"case"`
	Check   string  `json:"check"`
	Clause  string  `json:"clause"` // of SPEC.md, one or more
	Verdict Verdict `json:"verdict"`
	// Reason is why it is not a pass: for people, of several lines perhaps.
	Reason string `json:"reason,omitempty"`
	// Seconds is how long it took.
	Seconds float64 `json:"seconds"`
}

// finding is a verdict and its reason.
type finding struct {
	verdict Verdict
	reason  string
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
		Case: c.Name, Check: check.Name, Clause: check.Clause,
		Verdict: f.verdict, Reason: f.reason, Seconds: time.Since(since).Round(time.Millisecond).Seconds(),
	}
}
