// Package store has what is decided of documents that do not lie in the bootstrap data: the stream that is left in their place, the terms on
// which the endpoint of the manager hands them out, and what the report of a machine says in the management cluster.
//
// It is pure: it asks no API server.
package store

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// The defaults of a MachineBootstrapStorage.
const (
	defaultExpiry   = 24 * time.Hour
	defaultDeadline = 20 * time.Minute
)

// Terms are the terms on which documents are served or stored. They are an annotation of the Secret with the documents, so that they move
// with it, and stay as they were when the storage changes or is deleted.
type Terms struct {
	// Digest is the SHA-256 of the bearer token, in hex, empty unless the endpoint serves them. A token of 256 random bits cannot be found from it.
	Digest string `json:"bearerSHA256,omitempty"`
	// Object is where a source plugin stores the documents, nil if none does.
	Object *Object `json:"object,omitempty"`
	// Claim is the claim for a storage of others, nil if the manager itself serves or stores the documents.
	Claim *Claim `json:"claim,omitempty"`
	// Expiry is how long after the creation of the Secret the documents can be fetched.
	Expiry Duration `json:"expiry"`
	// Deadline is how long a machine may send no report, 0 if none is expected.
	Deadline Duration `json:"deadline,omitempty"`
	// Removed says why the documents are not in the Secret and the store any more, empty while they are.
	Removed string `json:"removed,omitempty"`
}

// Duration is a duration that is written as Go writes it.
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = Duration(parsed)
	return err //nolint:wrapcheck // encoding/json says where
}

// NewTerms are the terms of a storage, without digest and object. Its error names the field.
func NewTerms(spec *bootstrap.MachineBootstrapStorageSpec, pool bool) (*Terms, error) {
	if (spec.Server == nil) == (spec.Source == nil) {
		return nil, errors.New("spec: must have either server or source")
	}
	terms := &Terms{Expiry: Duration(defaultExpiry), Deadline: Duration(defaultDeadline)}
	for _, f := range []struct {
		name, text string
		into       *Duration
	}{{"spec.expiry", spec.Expiry, &terms.Expiry}, {"spec.report.deadline", spec.Report.Deadline, &terms.Deadline}} {
		if f.text == "" {
			continue
		}
		if err := f.into.UnmarshalText([]byte(f.text)); err != nil || *f.into < Duration(time.Minute) || *f.into > Duration(longest) {
			return nil, fmt.Errorf("%s: must be a duration from 1m to %s, such as 30m", f.name, longest)
		}
	}
	if pool || spec.Report.Disabled != nil && *spec.Report.Disabled {
		terms.Deadline = 0 // the machines of a pool have one config, which has one status
	}
	return terms, nil
}

// NewClaimTerms are the terms of a storage of others. The manager gets no reports.
func NewClaimTerms(storage bootstrap.StorageReference) *Terms {
	return &Terms{Expiry: Duration(defaultExpiry), Claim: &Claim{Storage: storage}}
}

const longest = 720 * time.Hour

// Annotation is the form that the Secret has.
func (t *Terms) Annotation() (string, error) {
	text, err := json.Marshal(t)
	if err != nil {
		return "", fmt.Errorf("encode the terms of the storage: %w", err)
	}
	return string(text), nil
}

// ReadTerms reads the annotation of a Secret; nil if it has none, or one that is not ours.
func ReadTerms(annotations map[string]string) *Terms {
	var t Terms
	if json.Unmarshal([]byte(annotations[bootstrap.AnnotationStorage]), &t) != nil || !t.Remote() && len(t.Digest) != 2*sha256.Size {
		return nil
	}
	return &t
}

// Remote says whether the documents are neither in the bootstrap data nor at the endpoint.
func (t *Terms) Remote() bool { return t != nil && (t.Object != nil || t.Claim != nil) }

// Pending says whether remote documents are yet to be stored for the first time.
func (t *Terms) Pending() bool {
	return t != nil && (t.Object != nil && t.Object.Stored.IsZero() || t.Claim != nil && t.Claim.Version == "")
}

// Served has the endpoint serve the documents, for a bearer token.
func (t *Terms) Served(bearer string) { t.Digest = digest(bearer) }

// Reports says whether a report is expected.
func (t *Terms) Reports() bool { return t.Deadline > 0 }

// Admits compares a bearer token with the token of the documents, in a time that does not depend on where they differ.
func (t *Terms) Admits(bearer string) bool {
	return subtle.ConstantTimeCompare([]byte(digest(bearer)), []byte(t.Digest)) == 1
}

// Expired says whether the documents cannot be fetched any more.
func (t *Terms) Expired(created, now time.Time) bool {
	return now.Sub(created) >= time.Duration(t.Expiry)
}

func digest(bearer string) string {
	sum := sha256.Sum256([]byte(bearer))
	return hex.EncodeToString(sum[:])
}
