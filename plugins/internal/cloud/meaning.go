package cloud

import (
	"errors"
	"net/http"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
)

// Meaning is what an answer that is no success says beyond its status.
type Meaning struct {
	Status int    // counts instead of the status of the answer; 0 leaves that
	Code   string // of the service, for the message; never other text of the answer
	Hint   string // replaces the hint of the status
}

// statusError is the error of an answer of a server.
type statusError struct {
	error
	code int
}

// Unwrap returns the error of the contract.
func (e statusError) Unwrap() error { return e.error }

// Status returns the HTTP status of an error of Do that is the answer of a server, and otherwise 0.
func Status(err error) int {
	answer, _ := errors.AsType[statusError](err)
	return answer.code
}

// IsAbsent reports whether an error is the answer of a server that what was to be removed is not there.
func IsAbsent(err error) bool {
	known, ok := errors.AsType[*pluginv1.Error](err)
	return ok && slices.Contains([]string{"404", "410"}, known.Facts[pluginv1.FactStatus])
}

// Changed returns Retry for the answer to a write that was conditional on a version which is no longer the newest (409 or 412), and
// otherwise err. Another try reads the newest version first.
func Changed(err error) error {
	if code := Status(err); code == http.StatusConflict || code == http.StatusPreconditionFailed {
		return sdk.Retry(0, "another report was written while this one was being sent")
	}
	return err
}
