package serve

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/types"
)

// Backend has the streams and keeps the reports. Its methods are called concurrently. Errors that this file does not have are
// neither shown to the client nor logged, and the text of a panic is not either: the backend logs its own.
type Backend interface {
	// Authorize returns ErrDenied unless the config takes a report from this bearer. It goes before Report, so that no body is read
	// for a client without a right to send one.
	Authorize(ctx context.Context, of types.NamespacedName, bearer string) error
	// Data returns the stream of a config, or ErrDenied.
	Data(ctx context.Context, of types.NamespacedName, bearer string) ([]byte, error)
	// Report keeps the report with this number. Its errors are ErrDenied, ErrOld, and an *InvalidError for another body than a report.
	Report(ctx context.Context, of types.NamespacedName, bearer string, sequence uint64, body []byte) error
}

// ErrDenied is the error for everything that a client may not have: no such config, a wrong bearer, a machine that has joined, a
// stream that has expired. They are one, so that a client cannot find out which configs exist.
var ErrDenied = errors.New("denied")

// ErrOld is the error for a report whose number is not larger than the one of the report that is kept. It is answered as success.
var ErrOld = errors.New("not newer than the report that is kept")

// InvalidError is the reason why a report is refused. The client gets the text, so it quotes no value.
type InvalidError struct{ Problem string }

// Error implements error.
func (e *InvalidError) Error() string { return e.Problem }
