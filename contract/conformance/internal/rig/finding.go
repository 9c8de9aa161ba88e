package rig

import "fmt"

// Status is the result of one check of one case.
type Status string

// The statuses.
const (
	Pass          = "pass"
	Fail          = "fail"
	NotApplicable = "not applicable" // the check says nothing about the case, for the reason given
)

// Finding is a violation of the contract. Every part is set, which TestFindingsAreComplete holds.
type Finding struct {
	Clause   string // of SPEC.md
	Expected string
	Got      string
	Cause    string // the likely cause, or how to fix it
}

// Result is what a check returns.
type Result struct {
	Status Status
	Reason string // of NotApplicable
	Finding
}

// Passed is the result without a finding.
func Passed() Result { return Result{Status: Pass} }

// Failed is the result with this finding.
func Failed(f Finding) Result { return Result{Status: Fail, Finding: f} }

// Skipped is the result of a check that is not applicable, with the reason.
func Skipped(format string, args ...any) Result {
	return Result{Status: NotApplicable, Reason: fmt.Sprintf(format, args...)}
}
