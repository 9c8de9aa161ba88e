package cri

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
)

const redacted = "[redacted]"

var errHidden = errors.New("what may hold a secret is not marshalled")

// hidden is for embedding in what may hold a secret. Every verb of fmt, slog and every marshaller shows "[redacted]" or
// answers an error.
type hidden[T any] struct {
	// Two pointers: in an unexported field of a struct fmt finds no methods, and a verb that it does not know of a
	// pointer, %s for one, makes it print what a single one points to.
	data **T
}

func hide[T any](data T) hidden[T] {
	inner := &data
	return hidden[T]{data: &inner}
}

func (h hidden[T]) reveal() T {
	if h.data == nil {
		var none T
		return none
	}
	return **h.data
}

// Format answers every verb with "[redacted]".
func (h hidden[T]) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) } // a fmt.State has nowhere to report to

// String is "[redacted]".
func (h hidden[T]) String() string { return redacted }

// LogValue is "[redacted]".
func (h hidden[T]) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON answers an error.
func (h hidden[T]) MarshalJSON() ([]byte, error) { return nil, errHidden }

// MarshalText answers an error.
func (h hidden[T]) MarshalText() ([]byte, error) { return nil, errHidden }

// MarshalYAML answers an error.
func (h hidden[T]) MarshalYAML() (any, error) { return nil, errHidden }

// GobEncode answers an error.
func (h hidden[T]) GobEncode() ([]byte, error) { return nil, errHidden }
