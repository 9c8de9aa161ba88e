package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is the text form of a Secret.
const Redacted = "[redacted]"

// ErrSecretMarshal is the error of marshalling a Secret. A secret leaves the process only by the document encoder or an
// explicit Reveal.
var ErrSecretMarshal = errors.New("only the document encoder can marshal a secret")

// Secret holds confidential bytes. In a document it is a mapping with the single key value.
//
// Copies share the bytes by pointer. Every verb of fmt and slog formats "[redacted]", and every marshaller fails. The zero
// Secret is empty.
type Secret struct {
	// Two pointers, because fmt does not call methods of an unexported field and prints the target of a single pointer
	// for verbs such as %s.
	data **[]byte
}

// NewSecret returns a Secret with a copy of data.
func NewSecret(data []byte) Secret {
	kept := bytes.Clone(data)
	inner := &kept
	return Secret{data: &inner}
}

// Reveal returns the bytes, for the point of use. The caller must not change or keep them.
func (s Secret) Reveal() []byte {
	if s.data == nil {
		return nil
	}
	return **s.data
}

// IsZero reports whether the secret is absent.
func (s Secret) IsZero() bool { return s.data == nil }

// Format formats every verb as "[redacted]", including %x and %#v.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) } // a fmt.State does not fail

// String returns "[redacted]".
func (s Secret) String() string { return Redacted }

// GoString returns "[redacted]".
func (s Secret) GoString() string { return Redacted }

// LogValue returns "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON returns ErrSecretMarshal.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, ErrSecretMarshal }

// MarshalYAML returns ErrSecretMarshal.
func (s Secret) MarshalYAML() (any, error) { return nil, ErrSecretMarshal }

// MarshalText returns ErrSecretMarshal.
func (s Secret) MarshalText() ([]byte, error) { return nil, ErrSecretMarshal }

// GobEncode returns ErrSecretMarshal.
func (s Secret) GobEncode() ([]byte, error) { return nil, ErrSecretMarshal }

// UnmarshalJSON reads {"value": "..."}. Its errors never quote the value.
func (s *Secret) UnmarshalJSON(data []byte) error {
	shape := errors.New("must be a mapping with the single key value, a string")
	var body map[string]json.RawMessage // a map matches names exactly, unlike a struct
	var value *string
	if json.Unmarshal(data, &body) != nil || len(body) != 1 || json.Unmarshal(body["value"], &value) != nil || value == nil {
		if _, found := body["valueFrom"]; found {
			return errors.New("has valueFrom, which is for objects in a cluster: write the text itself, as value")
		}
		return shape // not %w: encoding/json quotes the value
	}
	*s = NewSecret([]byte(*value))
	return nil
}
