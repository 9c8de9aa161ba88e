package conformance

import "fmt"

// Status is the result of one check of one case.
type Status string

// The statuses.
const (
	Pass          Status = "pass"
	Fail          Status = "fail"
	NotApplicable Status = "not applicable" // the check says nothing about the case, for the reason given
)

// finding is a violation of the contract. Every part is set, which TestFindingsAreComplete holds.
type finding struct {
	clause   string // of SPEC.md
	expected string
	got      string
	cause    string // the likely cause, or how to fix it
}

// result is what a check returns.
type result struct {
	status Status
	reason string // of NotApplicable
	finding
}

func passed() result { return result{status: Pass} }

func failed(f finding) result { return result{status: Fail, finding: f} }

func skipped(format string, args ...any) result {
	return result{status: NotApplicable, reason: fmt.Sprintf(format, args...)}
}
