// Package run processes the documents of a stream with their plugins, in stream order. Each stage takes values and returns
// values: read, expand, bind, plan, apply; the report is made from the results.
//
// The package reads no file and starts no process. The caller passes in what it needs of the machine, as Dependencies.
package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/run/expand"
	"github.com/machineadm/machineadm/host/state"
)

// Mode is the last stage of a run.
type Mode int

// The modes, each of which includes those before it.
const (
	ModeValidate Mode = iota // reports configuration errors only
	ModePlan                 // shows what would change
	ModeApply                // changes it
)

// The default deadlines of the contract.
const (
	PlanTimeout  = 60 * time.Second
	ApplyTimeout = v1alpha1.DefaultTimeout
	RunTimeout   = 60 * time.Minute
	StopGrace    = 30 * time.Second
)

// MaxReboots is the number of reboots that one stream may cause.
const MaxReboots = 3

// Options are the stream of a run and its target.
type Options struct {
	Mode   Mode
	Stream *document.Stream
	Text   []byte // the stream as it was read, which its digest covers
	// Root is the absolute path of an image root, or of an empty directory for ModeValidate; empty means the live machine.
	Root   string
	Target target.Target
	// Phase selects documents by the phase of their kind; PhaseUnspecified selects all.
	Phase pluginv1.Phase
	// ContractOnly limits ModeValidate to the structs of the contract, for systems where no plugin runs. Documents of other
	// kinds are only decoded.
	ContractOnly bool
	// ResolveOnly ends a plan when every document is resolved, before any is planned.
	ResolveOnly bool
	// AllowSecrets permits documents with a secret in an image.
	AllowSecrets bool
	// Defaults maps a kind to the default provider of the operating system's vendor (defaults.yaml).
	Defaults map[string]string
	// ImageChoices maps KIND/NAME to the provider that was chosen when the image was baked (choices.json).
	ImageChoices map[string]string
	// Resumed means that an earlier boot began the run: what it resolved is used as it is.
	Resumed bool
	// Reboot means that the caller reboots the machine if the exit code asks for it. The run counts its reboots then, and
	// saves itself for the next boot.
	Reboot bool
	// Timeout bounds the run; 0 means RunTimeout.
	Timeout time.Duration
	// PlanTimeout bounds each Plan of a document, and all sources together before the first planning; 0 means the constant PlanTimeout.
	PlanTimeout time.Duration
	// Interrupt is closed to request an early, orderly end.
	Interrupt <-chan struct{}
	// Grace bounds the current change after an interruption or a deadline; 0 means StopGrace.
	Grace time.Duration
	// Retry bounds the retries of one document.
	Retry RetryPolicy
}

// RetryPolicy bounds the retries of a document that answers Retry: the first and the longest pause, and their total.
type RetryPolicy struct {
	First, Most, Total time.Duration
}

// DefaultRetry backs off from 1 s to 30 s, for at most 5 min in total.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{First: time.Second, Most: 30 * time.Second, Total: 5 * time.Minute}
}

// Plugins finds and starts plugins.
type Plugins interface {
	// Find returns the plugin with this binary name.
	Find(binary string) (catalog.Plugin, error)
	// ByType returns every installed provider of a kind, or an error if there is none.
	ByType(kind string) ([]catalog.Plugin, error)
	// Start starts a plugin, or returns the running one.
	Start(ctx context.Context, p catalog.Plugin) (*launch.Plugin, error)
}

// State is kept for later runs.
type State interface {
	// PluginDir returns the private directory of a plugin for one document.
	PluginDir(binary, kind, name string) (string, error)
	// Choices returns the providers that earlier runs chose on this machine, by KIND/NAME.
	Choices() (map[string]string, error)
	// Choose saves a choice durably.
	Choose(document, provider string) error
}

// Sentinel is the file that reports success to Cluster API.
type Sentinel interface {
	Remove() error
	Write() error
}

// Reboots keeps the requested reboots until the machine has rebooted, and counts the reboots of a stream.
type Reboots interface {
	// Requests returns the requests of this boot, in the order in which they were made.
	Requests() ([]state.Request, error)
	// Keep replaces them durably.
	Keep(requests []state.Request) error
	// Count counts a reboot for a stream, once in a boot, and returns the number so far.
	Count(streamDigest string) (int, error)
	// Forget resets the count.
	Forget() error
}

// Resume makes the next boot continue the run.
type Resume interface {
	// Keep saves the run for the next boot. After an error nothing is saved.
	Keep(ctx context.Context) error
	// End is called when the run has ended without Keep; complete means that it reached the end of its stream. It returns how
	// the run can be continued.
	End(ctx context.Context, outcome report.Outcome, complete bool) (report.Resume, error)
}

// Writes records the files that a run will write, so that a later run can remove the leftovers of a killed one.
type Writes interface {
	// Record adds absolute paths of the target, durably.
	Record(paths []string) error
}

// Resolved keeps the streams of references, until the run has succeeded.
type Resolved interface {
	expand.Resolved
	// Forget removes all of them.
	Forget() error
}

// Dependencies are what a run needs of the machine.
type Dependencies struct {
	Plugins Plugins
	State   State // nil keeps nothing
	// Choosable returns why an image does not take choices, as far as that shows before they are saved; nil for the live machine.
	Choosable func() error
	Sentinel  Sentinel // nil if the run is not live
	Reboots   Reboots  // nil if the run is not live
	Resume    Resume   // nil if the run is not live
	Writes    Writes   // nil if nothing is applied
	Resolved  Resolved // nil keeps nothing
	// StreamDigest identifies a stream, see report.Report; nil leaves it as it is.
	StreamDigest func(stream []byte) (string, error)
	// Log records decisions; nil discards them.
	Log *slog.Logger
	// Observe receives every event, in order. It must not block.
	Observe func(Event)
	// Record saves the report, during the run and at its end; nil saves none.
	Record func(report.Report, map[string]string) error
}

// EventType is the type of an Event.
type EventType string

// The types of events, in the order in which they occur.
const (
	EventRunStarted       EventType = "run-started"
	EventDocumentPlanned  EventType = "document-planned"
	EventDocumentStarted  EventType = "document-started"
	EventChangeStarted    EventType = "change-started"
	EventProgress         EventType = "progress"
	EventChangeRunning    EventType = "change-running"
	EventChangeFinished   EventType = "change-finished"
	EventWarning          EventType = "warning"
	EventRetry            EventType = "retry"
	EventDocumentFinished EventType = "document-finished"
	EventRunFinished      EventType = "run-finished"
)

// Event is a step of a run. What it points to does not change afterwards.
type Event struct {
	Type     EventType
	Time     time.Time
	Document *report.Document // nil for events of the run
	Errors   []report.Error   // document-finished: of a failed document
	Planned  []PlannedChange  // document-planned
	Pending  string           // document-planned: why the plan must wait for the document's turn
	Change   *pluginv1.Change // change-started
	Result   *report.Change   // change-running, change-finished
	Message  string           // progress, warning, retry
	Report   *report.Report   // run-started, run-finished
}

// PlannedChange is a change of a plan.
type PlannedChange struct {
	pluginv1.Change
	After string // KIND/NAME of the earlier document without whose files the change would be another or none; only in ModePlan
}
