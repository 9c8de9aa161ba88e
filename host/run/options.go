// Package run drives the documents of a stream through their plugins, in stream order. Each stage takes values and returns
// values: read, expand, bind, plan, apply; the report is folded from the results.
//
// It decides; it reads no file and starts no process by itself. What it needs of the machine comes in as arguments.
package run

import (
	"context"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
)

// Mode says how far a run goes.
type Mode int

// The modes, from the least.
const (
	ModeValidate Mode = iota // configuration errors only
	ModePlan                 // what would change
	ModeApply                // change it
)

// The default deadlines of the contract.
const (
	PlanTimeout  = 60 * time.Second
	ApplyTimeout = 15 * time.Minute
	RunTimeout   = 60 * time.Minute
	StopGrace    = 30 * time.Second
)

// MaxReboots is how often one stream may reboot the machine.
const MaxReboots = 3

// Options say what is run, and where.
type Options struct {
	Mode   Mode
	File   string // the stream's name in messages
	Stream []byte
	// Root is the absolute path of an image root, or of an empty directory for ModeValidate; empty: the live machine.
	Root   string
	Target target.Target
	// Phase picks documents by the phase of their kind; PhaseUnspecified picks all.
	Phase pluginv1.Phase
	// AllowSecrets lets a document that holds a secret into an image.
	// ContractOnly limits a validation to the contract's structs, where no plugin can run. Documents of other kinds are only
	// decoded.
	ContractOnly bool
	AllowSecrets bool
	// Defaults maps a kind to the provider that the OS vendor chose (defaults.yaml).
	Defaults map[string]string
	// ImageChoices maps KIND/NAME to the provider that was chosen when the image was baked (choices.json).
	ImageChoices map[string]string
	// Reboot says that the caller reboots the machine when the exit code asks for it: then reboots are counted, and the
	// run is kept over each.
	Reboot bool
	// Timeout bounds the whole run; 0 means RunTimeout.
	Timeout time.Duration
	// PlanTimeout bounds each planning of a document; 0 means the constant of that name.
	PlanTimeout time.Duration
	// Interrupt asks for an early, orderly end when it is closed.
	Interrupt <-chan struct{}
	// Grace is how long a change in hand may still take after an interruption or a deadline; 0 means StopGrace.
	Grace time.Duration
	// Retry bounds the retries of one document.
	Retry RetryPolicy
}

// RetryPolicy says how often a document that answers Retry is tried again.
type RetryPolicy struct {
	First, Most, Total time.Duration
}

// DefaultRetry backs off from 1 s to 30 s, at most 5 min in all.
func DefaultRetry() RetryPolicy {
	return RetryPolicy{First: time.Second, Most: 30 * time.Second, Total: 5 * time.Minute}
}

// Plugins finds and starts plugins.
type Plugins interface {
	// Find is the one plugin of this binary's name.
	Find(binary string) (catalog.Plugin, error)
	// ByType lists every installed provider of a kind, and fails when there is none.
	ByType(kind string) ([]catalog.Plugin, error)
	// Start starts a plugin, or returns the one that runs already.
	Start(ctx context.Context, p catalog.Plugin) (*launch.Plugin, error)
}

// State is what a run keeps for the next one. A run that must leave no trace has none.
type State interface {
	// PluginDir is the private directory of a plugin for one document.
	PluginDir(binary, kind, name string) (string, error)
	// Choices are the providers that an earlier run chose on this machine, by KIND/NAME.
	Choices() (map[string]string, error)
	// Choose keeps a choice, durably.
	Choose(document, provider string) error
}

// Sentinel is the file that reports success to Cluster API.
type Sentinel interface {
	Remove() error
	Write() error
}

// Request is a reboot that a document asks for in this boot.
type Request struct {
	Document string // KIND/NAME
	When     pluginv1.Reboot
	// Asked is false for a change that was planned and of which it is not known whether it was begun.
	Asked bool
}

// Reboots keeps the requested reboots until the machine has rebooted, and counts them.
type Reboots interface {
	// Requests are those of this boot, in the order in which they were made.
	Requests() ([]Request, error)
	// Keep replaces them, durably.
	Keep(requests []Request) error
	// Count counts a reboot for a stream, once in a boot, and returns the number of its reboots so far.
	Count(generation string) (int, error)
	// Forget starts the count again.
	Forget() error
}

// Resume makes the next boot continue the run.
type Resume interface {
	// Keep stores the run and makes the next boot continue it. After an error nothing does.
	Keep(ctx context.Context) error
	// End is called when the run has ended without Keep. complete says that the run got to the end of its stream. It
	// returns how the run can be continued.
	End(ctx context.Context, outcome report.Outcome, complete bool) (report.Resume, error)
}

// Writes records which files will be written, so that a later run can remove what a killed one leaves beside them.
type Writes interface {
	// Record adds absolute paths of the target, durably.
	Record(paths []string) error
}

// Dependencies are what a run works with.
type Dependencies struct {
	Plugins  Plugins
	State    State    // nil: keep nothing
	Sentinel Sentinel // nil: not a live run
	Reboots  Reboots  // nil: not a live run
	Resume   Resume   // nil: not a live run
	Writes   Writes   // nil: nothing is applied
	// Log takes decisions; nil discards them.
	Log *slog.Logger
	// Observe takes every event, in order. It must not block.
	Observe func(Event)
	// Record keeps the report, while the run is going on and at its end; nil keeps none.
	Record func(report.Report, map[string]string) error
}

// EventType says what an Event reports.
type EventType string

// The types of events, in the order in which they come.
const (
	EventRunStarted       EventType = "run-started"
	EventDocumentPlanned  EventType = "document-planned"
	EventDocumentStarted  EventType = "document-started"
	EventChangeStarted    EventType = "change-started"
	EventProgress         EventType = "progress"
	EventChangeFinished   EventType = "change-finished"
	EventWarning          EventType = "warning"
	EventRetry            EventType = "retry"
	EventDocumentFinished EventType = "document-finished"
	EventRunFinished      EventType = "run-finished"
)

// Event is one thing that happened. What it points to does not change afterwards.
type Event struct {
	Type     EventType
	Time     time.Time
	Document *report.Document  // the document that it is about; nil for the run's own events
	Errors   []report.Error    // document-finished: why the document failed
	Planned  []pluginv1.Change // document-planned
	Pending  string            // document-planned: why it cannot be decided yet
	Change   *pluginv1.Change  // change-started
	Result   *report.Change    // change-finished
	Message  string            // progress, warning, retry
	Report   *report.Report    // run-started, run-finished
}
