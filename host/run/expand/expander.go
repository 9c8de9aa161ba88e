package expand

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/host/run/values"
)

// Options are the run whose references are resolved.
type Options struct {
	Validate, Apply bool
	Resumed         bool // what an earlier boot resolved is used as it is
	WithoutSecrets  bool // an image must not get them
	Target          target.Target
	Text            []byte // the stream of the run
	// Timeout is the limit of the run, and PlanTimeout the limit of all sources before the first planning.
	Timeout, PlanTimeout time.Duration
	Resolved             Resolved // nil keeps nothing
	// StreamDigest identifies a stream; nil for no digest.
	StreamDigest func(stream []byte) (string, error)
	// At returns a time on the clock of the report.
	At  func(time.Time) time.Time
	Log *slog.Logger
	Run Run
}

// Run is the run around a reference.
type Run interface {
	// Checkpoint returns an error if the run has to end.
	Checkpoint(ctx context.Context) error
	// Bind returns a result with the plugin that serves a reference, or settled without one. An error ends the run.
	Bind(ctx context.Context, d values.Doc) (values.Result, error)
	// Warn adds warnings to the result of a document, and shows those that are new.
	Warn(d values.Doc, res values.Result, warnings ...pluginv1.Warning) values.Result
	// Progress shows a message about a document.
	Progress(d values.Doc, res values.Result, message string)
	// Waits shows that a document waits for its source. The first time it is saved, for as long as the document waits.
	Waits(d values.Doc, message string, first bool)
}

// Resolved keeps the streams of references, until the run has succeeded: a source may answer only once.
type Resolved interface {
	// Load returns what was kept under a key, nil for nothing.
	Load(key string) ([]byte, error)
	// Keep saves it durably, readable by this user only.
	Keep(key string, data []byte) error
	// Only removes what is kept under other keys, unless a run that waits for a reboot may need it.
	Only(keys []string) error
}

// Expander resolves the references of a run. Its limits hold for all of them together.
type Expander struct {
	o       Options
	chains  map[string]string // of every document, by KIND/NAME
	keys    []string          // of what this run resolves, also if it cannot yet
	fetches int
	bytes   int64
	opener  *envelope.Opener
	sums    map[string][sha256.Size]byte // the digests of all that was resolved, by the ID of the document
}

// New returns the Expander of a run with these documents.
func New(o Options, docs []values.Doc) *Expander {
	x := &Expander{
		o: o, chains: map[string]string{}, sums: map[string][sha256.Size]byte{}, bytes: int64(len(o.Text)), opener: envelope.NewOpener(),
	}
	for _, d := range docs {
		x.chains[d.Label()] = d.Chain()
	}
	return x
}
