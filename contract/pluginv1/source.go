package pluginv1

import (
	"context"
	"time"

	"github.com/machineadm/machineadm/contract/target"
)

// The optional calls of a plugin, which it lists in Description.Capabilities.
const (
	CapabilityFiles         = "files"          // Request.Files and Request.ListFiles of Configurator.Plan
	CapabilityReport        = "report"         // Source.Report
	CapabilityStore         = "store"          // Source.Store and Source.Remove
	CapabilityNewPassphrase = "new-passphrase" // KeyProvider.NewPassphrase
)

// The bounds of what sources and key providers send.
const (
	MaxChunkBytes      = 1 << 20 // bytes of a Chunk
	MinPassphraseBytes = 14      // as FIPS 140-3 demands of the key of an HMAC
	MaxPassphraseBytes = 4 << 10
	// MaxStoredConfigBytes is the size of Stored.ProviderConfig.
	MaxStoredConfigBytes = 64 << 10
)

// FactStatus is the fact of an error of Fetch or Passphrase by which the source answered that it has nothing for this machine:
// 401, 403, 404 or 410, as in HTTP.
const FactStatus = "status"

// FetchRequest is the request of Fetch.
type FetchRequest struct {
	Document []byte // the whole RemoteConfig document as JSON
	Target   target.Target
	MaxBytes int64 // the largest object, in bytes
	// RetryFor is how long the plugin may try again by itself before it answers Retry; 0 for one try.
	RetryFor time.Duration
	// ValidateOnly requests the errors of the document alone, without a connection.
	ValidateOnly bool
}

// Chunk is a part of an object.
type Chunk struct {
	// Begin marks the first part of the object. After a lost connection it comes again, and what came before is discarded.
	Begin    bool
	Revision string // with Begin: an ETag or a version, empty if the source has none
	Data     []byte // without Begin: 1 to MaxChunkBytes bytes
}

// ReportRequest is the request of Report.
type ReportRequest struct {
	Document []byte // the whole RemoteConfig or ReportTarget document as JSON
	Target   target.Target
	Report   []byte // report.json; empty with ValidateOnly
	Sequence uint64 // grows with every report of this machine
	// ValidateOnly requests the errors of the document alone, without a connection.
	ValidateOnly bool
}

// Source is a plugin that fetches objects. A server implements it, and so does Client.
type Source interface {
	Describer
	// Fetch passes the parts of the object to send, whose data is valid until send returns. It changes nothing.
	Fetch(ctx context.Context, r FetchRequest, send func(Chunk) error) error
	// Report keeps a report at the destination that the document names. Without CapabilityReport it is Unsupported.
	Report(ctx context.Context, r ReportRequest) error
	// Store keeps an object, and returns the zero Stored with ValidateOnly. Without CapabilityStore it is Unsupported.
	Store(ctx context.Context, r StoreRequest) (Stored, error)
	// Remove removes an object and the report beside it, and succeeds if there is none. Without CapabilityStore it is Unsupported.
	Remove(ctx context.Context, r RemoveRequest) error
}

// PassphraseRequest is the request of Passphrase.
type PassphraseRequest struct {
	Document []byte // the EncryptedConfig document as JSON, without spec.ciphertext
	Target   target.Target
	// RetryFor is how long the plugin may try again by itself before it answers Retry; 0 for one try.
	RetryFor time.Duration
	// ValidateOnly requests the errors of the document alone, without a connection.
	ValidateOnly bool
}

// NewPassphraseRequest is the request of NewPassphrase.
type NewPassphraseRequest struct {
	Key            string // the name of the key, in the form of the provider
	Target         target.Target
	ProviderConfig []byte // spec.providerConfig of the document to be written, as JSON; empty for none
}

// NewPassphrase is the answer of NewPassphrase.
type NewPassphrase struct {
	Passphrase []byte
	URI        string // spec.passphraseURI of the document to be written
}

// KeyProvider is a plugin that gets the passphrases of encrypted documents. A server implements it, and so does Client.
type KeyProvider interface {
	Describer
	// Passphrase returns the passphrase of a document; nil with ValidateOnly.
	Passphrase(ctx context.Context, r PassphraseRequest) ([]byte, error)
	// NewPassphrase returns a new passphrase that a key protects. Without CapabilityNewPassphrase it is Unsupported.
	NewPassphrase(ctx context.Context, r NewPassphraseRequest) (NewPassphrase, error)
}
