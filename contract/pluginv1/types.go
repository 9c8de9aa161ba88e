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

// Phase says when a kind of document can be applied.
type Phase int

// The phases of a kind.
const (
	PhaseUnspecified  Phase = iota
	PhasePreparation        // can be baked into an image
	PhaseProvisioning       // needs this machine's identity
)

// String is the phase as the command line spells it.
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

// Fitness says how a plugin fits a target.
type Fitness int

// The fitnesses, from none to best.
const (
	FitnessUnspecified Fitness = iota
	FitnessUnsupported         // the plugin cannot serve this target
	FitnessAbsent              // a target that the plugin knows, but what it configures is not installed
	FitnessInstalled           // what the plugin configures is installed
	FitnessActive              // what the plugin configures is what the target uses now
)

// String is the fitness as people read it.
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

// Reboot says when a change needs the machine to reboot. The host alone reboots.
type Reboot int

// When a change needs a reboot, from never to soonest.
const (
	RebootNone       Reboot = iota
	RebootAfterRun          // once every document is done
	RebootBeforeNext        // before the next document
)

// String is the reboot request as reports spell it.
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
	JSONSchema []byte // optional; only when DescribeRequest.JSONSchema asks for it
	// SecretFields are field paths, with [] for any element of a list or map: "spec.registries[].auth.password".
	SecretFields []string
}

// DescribeRequest says for which machine a plugin describes itself, and to which runtime.
type DescribeRequest struct {
	Root           string // absolute path of an image root; empty for the live machine
	Target         target.Target
	RuntimeVersion string
	JSONSchema     bool // asks for the schema of each kind
}

// Description is what a plugin says of itself.
type Description struct {
	Name          string // the provider, as in the binary's name
	Version       string
	Kinds         []Kind
	Fitness       Fitness
	FitnessReason string   // one sentence
	Distributions []string // os-release(5) IDs that this provider was written for; empty for a generic one
}

// Serves returns the kind that the plugin serves under this apiVersion and kind.
func (d Description) Serves(apiVersion, kind string) (Kind, bool) {
	for _, k := range d.Kinds {
		if k.APIVersion == apiVersion && k.Kind == kind {
			return k, true
		}
	}
	return Kind{}, false
}

// Request is what Plan and Apply work on.
type Request struct {
	Document []byte // the whole document as JSON
	Root     string // absolute path of an image root; empty for the live machine
	Target   target.Target
	StateDir string // private to plugin and document; empty when there is none
	// ClaimKey is the key of the digests in claims; empty when none are wanted. Plan alone.
	ClaimKey []byte
	// TimeLeft is what is left of the document's time limit; 0 when there is none. Apply alone.
	TimeLeft time.Duration
}

// Claim is one attribute or part of the machine that a document owns.
type Claim struct {
	ID     string // canonical, for example "sysctl:net.core.somaxconn", "file:/etc/motd", "unit:x.service#enabled"
	Digest []byte // HMAC-SHA-256 of the desired value under Request.ClaimKey
	Field  string // field path that asks for it; empty for the whole document
}

// Change is one step, planned from observation.
type Change struct {
	ID        string
	Summary   string
	Diff      string
	NeedsLive bool
	Reboot    Reboot
}

// Warning is worth a person's look and stops nothing.
type Warning struct {
	Field   string // field path, or empty
	Message string
}

// Plan is what Plan answers: the changes still missing.
type Plan struct {
	Changes  []Change
	Warnings []Warning
	Claims   []Claim // everything that the document owns, also where it matches already
}

// Event is what Apply sends: Started, Changed, Progress, Warning, and last, exactly once, Finished.
type Event interface{ event() }

// Started is sent before a change is begun.
type Started struct{ Change Change }

// Changed is sent when a change is done.
type Changed struct{ ID string }

// Progress is a sign of life, or the request of a reboot that turned out to be needed.
type Progress struct {
	ID      string
	Message string
	Reboot  Reboot
}

// Finished ends an Apply.
type Finished struct {
	Error    *Error   // nil when nothing went wrong
	Stopped  bool     // ended early because of Stop or of the limit
	Deferred []Change // left for first boot (an image root only)
}

func (Started) event()  {}
func (Changed) event()  {}
func (Progress) event() {}
func (Warning) event()  {}
func (Finished) event() {}

// Configurator is a plugin that configures a machine: what a server implements and what a Client offers.
type Configurator interface {
	// Describe says what the plugin is and how it fits the target.
	Describe(ctx context.Context, r DescribeRequest) (Description, error)
	// Plan reports every configuration error, else the changes that are missing. It writes nothing.
	Plan(ctx context.Context, r Request) (Plan, error)
	// Apply makes what is missing so, at most limit changes (0: all). Each event but Finished goes to send.
	Apply(ctx context.Context, r Request, limit int, send func(Event) error) (Finished, error)
	// Stop asks a running Apply to finish the change in hand and to start none.
	Stop(ctx context.Context) error
}
