// Package report defines the run report, which the host writes and the controller and operators read.
//
// The report contains codes, field paths and messages of machineadm, and is readable by everyone. Details holds raw output of
// other programs and is readable by root only.
package report

import "time"

// APIVersion and Kind identify a report.
const (
	APIVersion = "machineadm.cluster.x-k8s.io/v1alpha1"
	Kind       = "RunReport"
)

// MaxBytes is the size of a report that is sent, as JSON. One error alone can exceed it.
const MaxBytes = 256 << 10

// Outcome is the result of a run, a document or a change.
type Outcome string

// Outcomes of a run. Running is an unfinished run, or a killed one.
const (
	RunRunning        Outcome = "Running"
	RunSucceeded      Outcome = "Succeeded"
	RunFailed         Outcome = "Failed"
	RunInvalid        Outcome = "Invalid" // input refused; nothing was changed
	RunRebootRequired Outcome = "RebootRequired"
	RunInterrupted    Outcome = "Interrupted"
)

// Outcomes of a document.
const (
	Changed        Outcome = "Changed"
	Unchanged      Outcome = "Unchanged"
	Deferred       Outcome = "Deferred" // see Document.Reason
	NotApplicable  Outcome = "NotApplicable"
	Failed         Outcome = "Failed"
	Skipped        Outcome = "Skipped"
	RebootRequired Outcome = "RebootRequired"
)

// Interrupted is the outcome of a change that began and whose end is unknown. Others are Changed, Failed and Deferred.
const Interrupted Outcome = "Interrupted"

// Reasons for Deferred.
const (
	ReasonPhase    = "phase"    // --phase does not select its kind
	ReasonResolved = "resolved" // the documents of its stream took its place
	ReasonLive     = "live"     // some changes are impossible in an image root
)

// Resume is how a run resumes whose stream was saved before a reboot.
type Resume string

// The ways to resume.
const (
	ResumeAtBoot Resume = "AtBoot" // at the next boot
	ResumeByHand Resume = "ByHand" // by machineadm apply --resume
)

// The stages of a run, in their order. A run without references has no StageResolve, and one that ends early lacks the later ones.
const (
	StagePrepare = "prepare" // open the state, read the stream
	StageResolve = "resolve" // fetch and decrypt the streams of references
	StageStart   = "start"   // start the plugins
	StagePlan    = "plan"    // plan every document
	StageApply   = "apply"   // apply one document after the other
	StageFinish  = "finish"  // save the outcome, prepare a reboot
)

// The exit codes of the command line, also in the report.
const (
	ExitOK           = 0  // done, or nothing to do
	ExitFailed       = 1  // a document failed
	ExitUsage        = 2  // bad usage or configuration, nothing changed
	ExitReboot       = 3  // reboot needed, run again after it
	ExitPrecondition = 4  // precondition, missing or unsupported plugin
	ExitLocked       = 5  // another run holds the lock
	ExitUntrusted    = 6  // untrusted plugin, input or directory
	ExitDeadline     = 7  // deadline or retries exhausted
	ExitInterrupted  = 8  // interrupted
	ExitState        = 9  // state cannot be written
	ExitDiffers      = 10 // plan has changes
)

// Report is the report of one run.
type Report struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	RunID      string `json:"runID"`
	// StreamDigest is the keyed digest of the stream, in hex. Its name in JSON is of the first reports.
	StreamDigest string    `json:"generation,omitempty"`
	BootID       string    `json:"bootID,omitempty"`
	UptimeMs     int64     `json:"uptimeMs,omitempty"` // from the boot to StartedAt; 0 if unknown
	StartedAt    time.Time `json:"startedAt"`
	FinishedAt   time.Time `json:"finishedAt,omitzero"`
	Outcome      Outcome   `json:"outcome"`
	ExitCode     int       `json:"exitCode"`
	// Phase is the value of --phase; Root is the image root, empty for the live machine.
	Phase string `json:"phase,omitempty"`
	Root  string `json:"root,omitempty"`
	// Resume is how an incomplete run resumes; empty if it was not saved.
	Resume Resume `json:"resume,omitempty"`
	// Reboots are the reboots that were requested in this boot and are pending.
	Reboots []Reboot `json:"reboots,omitempty"`
	Host    Host     `json:"host"`
	// Stages are the parts of the run from StartedAt to its end, without a gap. Their sum is how long the run has lasted, also if
	// the clock was set.
	Stages    []Stage    `json:"stages,omitempty"`
	Errors    []Error    `json:"errors,omitempty"` // every error, once; the first decides the exit code
	Documents []Document `json:"documents"`
	// Trimmed marks the copy of a report that was too large to send: changes, waits, warnings, documents or the last errors are left out.
	Trimmed bool `json:"trimmed,omitempty"`
}

// Stage is a part of a run.
type Stage struct {
	Name       string `json:"name"` // such as StagePlan
	DurationMs int64  `json:"durationMs"`
}

// Reboot is a reboot that a document requested.
type Reboot struct {
	Document string `json:"document"` // KIND/NAME
	When     string `json:"when"`     // AfterRun, BeforeNext
}

// Host is the prepared machine or image.
type Host struct {
	Hostname string `json:"hostname,omitempty"`
	// Distribution is such as debian. Its name in JSON is of the first reports.
	Distribution string `json:"os"`
	OSVersion    string `json:"osVersion,omitempty"`
	Arch         string `json:"arch"`
	Kernel       string `json:"kernel,omitempty"`
	Machineadm   string `json:"machineadm"`
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
	// Omitted counts the changes, waits and warnings beyond the size limit of the document's part of the report.
	Omitted    int   `json:"omitted,omitempty"`
	Errors     []int `json:"errors,omitempty"` // 0-based indexes into Report.Errors
	DurationMs int64 `json:"durationMs"`
	// StartedAt is the beginning of DurationMs: StartedAt of the report, and the time since then. Setting the clock does not affect it.
	StartedAt time.Time `json:"startedAt,omitzero"`
	PlanMs    int64     `json:"planMs,omitempty"` // how long its plugins planned before its turn, all plans together
	Waits     []Wait    `json:"waits,omitempty"`  // the parts of DurationMs in which the run waited to try again
}

// Wait is the time in which a document was not tried, for one reason.
type Wait struct {
	Reason     string    `json:"reason"`
	StartedAt  time.Time `json:"startedAt"` // as for a document
	DurationMs int64     `json:"durationMs"`
}

// Plugin is the binary that served a document.
type Plugin struct {
	Path    string `json:"path"`
	Version string `json:"version,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// Change is one step of a document.
type Change struct {
	ID         string    `json:"id"`
	Summary    string    `json:"summary"`
	Outcome    Outcome   `json:"outcome"`
	DurationMs int64     `json:"durationMs"`
	StartedAt  time.Time `json:"startedAt,omitzero"` // as for a document
}

// Error describes an error, its position and a remedy.
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
	// Details is the key of the entry in details.json with the output of other programs, if any.
	Details string `json:"details,omitempty"`
	// Facts are machine-readable facts of the plugin, for example {"exitCode": "1", "phase": "preflight"}.
	Facts map[string]string `json:"facts,omitempty"`
}

// Error returns the message, so that a function can return what the report or the command line shows.
func (e *Error) Error() string { return e.Message }

// The codes of Error, in addition to the codes of plugins (InvalidConfig, Unsupported, Precondition, Retry, Internal).
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
	CodeConflict    = "Conflict" // two documents require different values of one thing
)

// Ending returns the outcome and the exit code of a run that ends with this error code. Changed says whether the run may have
// changed anything.
func Ending(code string, changed bool) (Outcome, int) {
	switch code {
	case "InvalidConfig", CodeConflict, CodeUsage:
		if changed { // ExitUsage means that nothing was changed
			return RunFailed, ExitFailed
		}
		return RunInvalid, ExitUsage
	case "Unsupported":
		if changed {
			return RunFailed, ExitPrecondition
		}
		return RunInvalid, ExitPrecondition
	case "Precondition", CodeNoPlugin:
		return RunFailed, ExitPrecondition
	case "Retry", CodeDeadline, CodeReboots:
		return RunFailed, ExitDeadline
	case CodeUntrusted:
		return RunFailed, ExitUntrusted
	case CodeLocked:
		return RunFailed, ExitLocked
	case CodeInterrupted:
		return RunInterrupted, ExitInterrupted
	case CodeState:
		return RunFailed, ExitState
	case CodeReboot:
		return RunRebootRequired, ExitReboot
	default: // Internal, Crashed
		return RunFailed, ExitFailed
	}
}

// ExitCode returns the exit code of a command that ends with this error code and has changed nothing.
func ExitCode(code string) int {
	_, exit := Ending(code, false)
	return exit
}

// Details is details.json: raw output of other programs by Error.Details, readable by root only.
type Details struct {
	RunID   string            `json:"runID"`
	Entries map[string]string `json:"entries"`
}
