// Package pluginv1 is the wire between a runtime and a plugin, protocol version 1: Go types, error codes, and the adapters
// between these types and gRPC. contract/launch starts a plugin and makes the handshake.
//
// Generated code is in pb and is used by this package alone; no signature here has a protobuf type.
package pluginv1

import (
	"context"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// ProtocolVersion is the version of the protocol in this package. Within it, fields are only added (SPEC V-2, V-3).
const ProtocolVersion = 1

// MaxMessageBytes is the limit of one message in both directions, in bytes. gRPC's default of 4 MiB is too small for a
// stream of 16 MiB, which escaping as JSON makes several times larger.
const MaxMessageBytes = 64 << 20

// Phase is when a kind of document can be applied.
type Phase int

// The phases of a kind.
const (
	PhaseUnspecified  Phase = iota
	PhasePreparation        // can be baked into an image
	PhaseProvisioning       // needs this machine's identity
)

// String returns the phase as on the command line.
func (p Phase) String() string {
	switch p {
	case PhasePreparation:
		return "preparation"
	case PhaseProvisioning:
		return "provisioning"
	default:
		return "unspecified"
	}
}

// Fitness is how a plugin fits a target.
type Fitness int

// The fitnesses, from none to best.
const (
	FitnessUnspecified Fitness = iota
	FitnessUnsupported         // the plugin cannot serve this target
	FitnessAbsent              // the plugin supports the target, but what it configures is not installed
	FitnessInstalled           // what the plugin configures is installed
	FitnessActive              // the target uses what the plugin configures
)

// String returns the fitness as shown to people.
func (f Fitness) String() string {
	switch f {
	case FitnessUnsupported:
		return "unsupported"
	case FitnessAbsent:
		return "absent"
	case FitnessInstalled:
		return "installed"
	case FitnessActive:
		return "active"
	default:
		return "unspecified"
	}
}

// Reboot is when a change needs a reboot of the machine. Only the host reboots.
type Reboot int

// The times of a reboot, from never to soonest.
const (
	RebootNone       Reboot = iota
	RebootAfterRun          // once every document is done
	RebootBeforeNext        // before the next document
)

// String returns the reboot request as in reports.
func (r Reboot) String() string {
	switch r {
	case RebootAfterRun:
		return "AfterRun"
	case RebootBeforeNext:
		return "BeforeNext"
	default:
		return "None"
	}
}

// Kind is one kind of document that a plugin serves.
type Kind struct {
	APIVersion string
	Kind       string
	Phase      Phase
	JSONSchema []byte // optional; only if DescribeRequest.JSONSchema is set
	// SecretFields are field paths, with [] for any element of a list or map: "spec.registries[].auth.password".
	SecretFields []string
	// Provides are beginnings of ids of claims: what documents give to later ones beside files that their plans list, "file:" for these. A
	// kind that says it also names what its Preconditions need. Nil: anything.
	Provides []string
}

// DescribeRequest is the machine that a plugin is described for, and the runtime that asks.
type DescribeRequest struct {
	Root           string // absolute path of an image root; empty for the live machine
	Target         target.Target
	RuntimeVersion string
	JSONSchema     bool // request the schema of each kind
}

// Description is the answer of Describe.
type Description struct {
	Name          string // the provider, as in the binary's name
	Version       string
	Kinds         []Kind
	Fitness       Fitness
	FitnessReason string   // one sentence
	Distributions []string // os-release(5) IDs that the provider was written for; empty for a generic provider
	Capabilities  []string // the optional calls that the plugin serves
}

// Serves returns the kind with this apiVersion and name.
func (d Description) Serves(apiVersion, kind string) (Kind, bool) {
	for _, k := range d.Kinds {
		if k.APIVersion == apiVersion && k.Kind == kind {
			return k, true
		}
	}
	return Kind{}, false
}

// Request is the request of Plan and Apply.
type Request struct {
	Document []byte // the whole document as JSON
	Root     string // absolute path of an image root; empty for the live machine
	Target   target.Target
	StateDir string // private to plugin and document; empty for none
	// ClaimKey is the key of the digests in claims; empty for no claims. Plan only.
	ClaimKey []byte
	// Files are what the plans of earlier documents leave of the files that they change. Plan only.
	Files []PlannedFile
	// ListFiles requests Plan.Files and Change.Listed. Plan only.
	ListFiles bool
	// TimeLeft is what is left of the document's time limit; 0 for no limit. Apply only.
	TimeLeft time.Duration
}

// Change is one step, planned from observation.
type Change struct {
	ID        string
	Summary   string
	Diff      string
	NeedsLive bool
	Reboot    Reboot
	Listed    bool // it does nothing but what Plan.Files lists
}

// Plan is the answer of Plan: the changes that are still missing.
type Plan struct {
	Changes  []Change
	Warnings []Warning
	Claims   []Claim // everything that the document owns, also what matches already
	Files    []PlannedFile
	Needs    []string // ids of claims of other documents that the changes need, whether or not the machine has it
}

// Event is an event of Apply: Started, Changed, Progress, Warning, and last, exactly once, Finished.
type Event interface{ event() }

// Started precedes a change.
type Started struct{ Change Change }

// Changed follows a change.
type Changed struct{ ID string }

// Progress reports the progress of a change, or requests a reboot whose need shows while the change runs.
type Progress struct {
	ID      string
	Message string
	Reboot  Reboot
}

// Finished ends an Apply.
type Finished struct {
	Error    *Error   // nil for success
	Stopped  bool     // ended early by Stop or the limit
	Deferred []Change // left for first boot (an image root only)
}

func (Started) event()  {}
func (Changed) event()  {}
func (Progress) event() {}
func (Warning) event()  {}
func (Finished) event() {}

// Describer is the part of every plugin.
type Describer interface {
	// Describe returns what the plugin serves and how it fits the target.
	Describe(ctx context.Context, r DescribeRequest) (Description, error)
}

// Configurator is a plugin that configures a machine. A server implements it, and so does Client.
type Configurator interface {
	Describer
	// Plan returns every configuration error, else the changes that are missing. It writes nothing.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply makes the missing changes, at most limit (0: all). It passes each event but Finished to send.
	Apply(ctx context.Context, r Request, limit int, send func(Event) error) (Finished, error)
	// Stop ends a running Apply after the change in hand.
	Stop(ctx context.Context) error
}
