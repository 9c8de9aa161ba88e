// Package report is the run report: the host writes it, the controller and people read it.
//
// It holds codes, field paths and our own words, and is readable by everyone. Raw words of other programs stand in
// Details, which is for root alone.
package report

import "time"

// APIVersion and Kind head every report.
const (
	APIVersion = "machineadm.cluster.x-k8s.io/v1alpha1"
	Kind       = "RunReport"
)

// Outcome is how a run, a document or a change ended.
type Outcome string

// How a run ended. Running stands in a report that was written while the run went on, and stays there when its
// process was killed.
const (
	RunRunning        Outcome = "Running"
	RunSucceeded      Outcome = "Succeeded"
	RunFailed         Outcome = "Failed"
	RunInvalid        Outcome = "Invalid" // the input was refused; nothing was changed
	RunRebootRequired Outcome = "RebootRequired"
	RunInterrupted    Outcome = "Interrupted"
)

// How a document ended.
const (
	Changed        Outcome = "Changed"
	Unchanged      Outcome = "Unchanged"
	Deferred       Outcome = "Deferred" // see Document.Reason
	NotApplicable  Outcome = "NotApplicable"
	Failed         Outcome = "Failed"
	Skipped        Outcome = "Skipped"
	RebootRequired Outcome = "RebootRequired"
)

// Interrupted says of a change that it was begun and that its end is not known. Else it is Changed, Failed or Deferred.
const Interrupted Outcome = "Interrupted"

// Why a document is Deferred.
const (
	ReasonPhase = "phase" // --phase did not pick its kind
	ReasonLive  = "live"  // some changes are impossible in an image root
)

// Resume is how a run goes on whose stream was kept over a reboot.
type Resume string

// The ways to go on.
const (
	ResumeAtBoot Resume = "AtBoot" // the next boot goes on with it
	ResumeByHand Resume = "ByHand" // machineadm apply --resume goes on with it
)

// The exit codes of the command line, which the report repeats.
const (
	ExitOK           = 0  // done, or already so
	ExitFailed       = 1  // a document failed
	ExitUsage        = 2  // bad usage or configuration, nothing changed
	ExitReboot       = 3  // reboot needed, run again after it
	ExitPrecondition = 4  // precondition, missing or unfitting plugin
	ExitLocked       = 5  // another run holds the lock
	ExitUntrusted    = 6  // untrusted plugin, input or directory
	ExitDeadline     = 7  // deadline or retries exhausted
	ExitInterrupted  = 8  // interrupted
	ExitState        = 9  // state cannot be written
	ExitDiffers      = 10 // plan has something to do
)

// Report is one run.
type Report struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	RunID      string    `json:"runID"`
	Generation string    `json:"generation,omitempty"` // keyed digest of the stream, hex; tells nothing about its content
	BootID     string    `json:"bootID,omitempty"`
	StartedAt  time.Time `json:"startedAt"`
	FinishedAt time.Time `json:"finishedAt,omitzero"`
	Outcome    Outcome   `json:"outcome"`
	ExitCode   int       `json:"exitCode"`
	// Phase is what --phase picked; Root is the image root, empty for the live machine.
	Phase string `json:"phase,omitempty"`
	Root  string `json:"root,omitempty"`
	// Resume says how a run that is not complete is continued; empty when nothing of it was kept.
	Resume Resume `json:"resume,omitempty"`
	// Reboots are the reboots that were asked for in this boot and are still due.
	Reboots   []Reboot   `json:"reboots,omitempty"`
	Host      Host       `json:"host"`
	Errors    []Error    `json:"errors,omitempty"` // every error, once; the first decides the exit code
	Documents []Document `json:"documents"`
}

// Reboot is a reboot that a document asked for.
type Reboot struct {
	Document string `json:"document"` // KIND/NAME
	When     string `json:"when"`     // AfterRun, BeforeNext
}

// Host is the machine that ran, or the image that was prepared.
type Host struct {
	Hostname   string `json:"hostname,omitempty"`
	OS         string `json:"os"`
	OSVersion  string `json:"osVersion,omitempty"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel,omitempty"`
	Machineadm string `json:"machineadm"`
}

// Document is one document of the stream.
type Document struct {
	Index      int      `json:"index"` // 0-based
	ID         string   `json:"id"`    // the number from 1; "3.1" for the first document that document 3 expands to
	APIVersion string   `json:"apiVersion"`
	Kind       string   `json:"kind"`
	Name       string   `json:"name"`
	Provider   string   `json:"provider,omitempty"`
	Plugin     *Plugin  `json:"plugin,omitempty"`
	Outcome    Outcome  `json:"outcome,omitempty"`
	Reason     string   `json:"reason,omitempty"`
	Changes    []Change `json:"changes,omitempty"`
	Warnings   []string `json:"warnings,omitempty"`
	// Omitted counts the changes and warnings that are left out because the document's part of the report is too large.
	Omitted    int   `json:"omitted,omitempty"`
	Errors     []int `json:"errors,omitempty"` // places in Report.Errors, from 0
	DurationMs int64 `json:"durationMs"`
}

// Plugin is the binary that served a document.
type Plugin struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Change is one step of a document.
type Change struct {
	ID         string  `json:"id"`
	Summary    string  `json:"summary"`
	Outcome    Outcome `json:"outcome"`
	DurationMs int64   `json:"durationMs"`
}

// Error is what went wrong, where, and what to do.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Document is KIND/NAME; empty for an error of the run or of the stream.
	Document string `json:"document,omitempty"`
	Field    string `json:"field,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"column,omitempty"`
	Hint     string `json:"hint,omitempty"`
	// Details names the entry of details.json that holds other programs' words, if there are any.
	Details string `json:"details,omitempty"`
	// Facts are for programs: what the plugin found out, for example {"exitCode": "1", "phase": "preflight"}.
	Facts map[string]string `json:"facts,omitempty"`
}

// The codes of Error beside the plugin's own (InvalidConfig, Unsupported, Precondition, Retry, Internal).
const (
	CodeUsage       = "Usage"
	CodeNoPlugin    = "NoPlugin"
	CodeUntrusted   = "Untrusted"
	CodeLocked      = "Locked"
	CodeDeadline    = "Deadline"
	CodeInterrupted = "Interrupted"
	CodeCrashed     = "Crashed"
	CodeState       = "State"
	CodeReboot      = "Reboot"
	CodeReboots     = "TooManyReboots"
	CodeConflict    = "Conflict" // two documents ask for different values of one thing
)

// ExitCode is the exit code of a run that ends with an error of this code.
func ExitCode(code string) int {
	switch code {
	case "InvalidConfig", CodeConflict, CodeUsage:
		return ExitUsage
	case "Unsupported", "Precondition", CodeNoPlugin:
		return ExitPrecondition
	case "Retry", CodeDeadline, CodeReboots:
		return ExitDeadline
	case CodeUntrusted:
		return ExitUntrusted
	case CodeLocked:
		return ExitLocked
	case CodeInterrupted:
		return ExitInterrupted
	case CodeState:
		return ExitState
	case CodeReboot:
		return ExitReboot
	default: // Internal, Crashed
		return ExitFailed
	}
}

// Details is details.json: raw words of other programs, by the name that Error.Details gives. Readable by root alone.
type Details struct {
	RunID   string            `json:"runID"`
	Entries map[string]string `json:"entries"`
}
