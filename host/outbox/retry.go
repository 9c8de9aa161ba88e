package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// sendTime is the longest try of Retry.
const sendTime = time.Minute

// Retry sends a report that waits, if its next try is due or now is set. The try takes at most timeout. It returns what it did, for
// the operator; an error without a message only has the code, and one that is no *report.Error is of the state directory.
func (s Sender) Retry(ctx context.Context, o state.Outgoing, timeout time.Duration, now bool) (string, error) {
	if Expired(o, clock()) {
		s.forget(ctx, o.Sequence)
		return "", &report.Error{Code: report.CodeDeadline, Message: "the report was not delivered within 24 hours and is dropped"}
	}
	if wait := Wait(o, clock()); wait > 0 && !now {
		return fmt.Sprintf("the report is tried again in %s", wait.Round(time.Second)), &report.Error{Code: report.CodeDeadline}
	}
	try, cancel := context.WithTimeout(ctx, min(timeout, sendTime))
	defer cancel()
	err := s.send(try, o)
	answer, after := Classify(o, err)
	switch answer {
	case Delivered:
		s.forget(ctx, o.Sequence)
		return "the report is delivered", nil
	case Refused, NotWanted:
		s.forget(ctx, o.Sequence)
		e := pluginv1.AsError(err)
		return "", &report.Error{Code: e.Code.String(), Message: "the report is dropped: " + e.Error(), Hint: e.Hint}
	}
	message := "the report was not sent: " + sendError(err)
	o = Failed(o, clock(), time.Now().UTC(), after, rand.Float64())
	if err := s.Box.Update(o); err != nil {
		return "", err
	}
	return "", &report.Error{
		Code: report.CodeDeadline, Message: message,
		Hint: fmt.Sprintf("it is tried again in %s, until 24 hours after the first try", o.Pause.Round(time.Second)),
	}
}
