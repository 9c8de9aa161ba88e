package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Secret shows of itself.
const Redacted = "[redacted]"

// ErrSecretMarshal is what marshalling a Secret answers: a secret leaves the process only through the document
// encoder or an explicit Reveal.
var ErrSecretMarshal = errors.New("a secret is written by the document encoder alone")

// Secret holds bytes that must not be seen. In a document it is a mapping with the single key value.
//
// The bytes stand behind pointers, so that copying or comparing a Secret never copies them, and every verb of fmt,
// slog and every marshaller shows "[redacted]" or answers an error. The zero Secret is empty.
type Secret struct {
	// Two pointers: in an unexported field of a struct fmt finds no methods, and a verb that it does not know of a
	// pointer, %s for one, makes it print what a single one points to.
	data **[]byte
}

// NewSecret keeps a copy of data.
func NewSecret(data []byte) Secret {
	kept := bytes.Clone(data)
	inner := &kept
	return Secret{data: &inner}
}

// Reveal returns the bytes themselves, for the point of use. The caller neither changes nor keeps them.
func (s Secret) Reveal() []byte {
	if s.data == nil {
		return nil
	}
	return **s.data
}

// IsZero says whether no secret was given.
func (s Secret) IsZero() bool { return s.data == nil }

// Format answers every verb with "[redacted]", so that not even %x or %#v opens the secret.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) } // a fmt.State has nowhere to report to

// String is "[redacted]".
func (s Secret) String() string { return Redacted }

// GoString is "[redacted]".
func (s Secret) GoString() string { return Redacted }

// LogValue is "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON answers ErrSecretMarshal.
func (s Secret) MarshalJSON() ([]byte, error) { return nil, ErrSecretMarshal }

// MarshalYAML answers ErrSecretMarshal.
func (s Secret) MarshalYAML() (any, error) { return nil, ErrSecretMarshal }

// MarshalText answers ErrSecretMarshal.
func (s Secret) MarshalText() ([]byte, error) { return nil, ErrSecretMarshal }

// GobEncode answers ErrSecretMarshal.
func (s Secret) GobEncode() ([]byte, error) { return nil, ErrSecretMarshal }

// UnmarshalJSON reads {"value": "..."}. Its errors never quote what they read.
func (s *Secret) UnmarshalJSON(data []byte) error {
	shape := errors.New("must be a mapping with the single key value, a string")
	var body map[string]json.RawMessage // names match exactly, other than in a struct
	var value *string
	if json.Unmarshal(data, &body) != nil || len(body) != 1 || json.Unmarshal(body["value"], &value) != nil || value == nil {
		return shape // never %w: encoding/json quotes what it read
	}
	*s = NewSecret([]byte(*value))
	return nil
}
