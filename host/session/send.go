package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/outbox"
	"github.com/machineadm/machineadm/host/state"
)

// sendTime is the longest try of Send.
const sendTime = time.Minute

// Send sends the report that waits to be delivered, if its next try is due or now is set. It returns what it did, for the
// operator; an error without a message only has the code.
func Send(ctx context.Context, o Options, now bool) (string, error) {
	s, err := Open(ctx, o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	box := state.OutboxIn(s.stateDir)
	waits, err := s.waiting(ctx, box)
	if err != nil {
		return "", stateError(err)
	}
	if waits == nil {
		if err := s.stopReports(ctx, box); err != nil {
			return "", stateError(err)
		}
		return "no report waits in " + s.stateDir, nil
	}
	if outbox.Expired(*waits, clock()) {
		s.forgetReport(ctx, waits.Sequence)
		return "", &report.Error{Code: report.CodeDeadline, Message: "the report was not delivered within 24 hours and is dropped"}
	}
	if wait := outbox.Wait(*waits, clock()); wait > 0 && !now {
		return fmt.Sprintf("the report is tried again in %s", wait.Round(time.Second)), &report.Error{Code: report.CodeDeadline}
	}
	s.searchAs(&state.Pending{PluginDirs: waits.PluginDirs, PluginPath: waits.PluginPath, Proxies: waits.Proxies})
	return s.sendWaiting(ctx, box, *waits)
}

// waiting returns the report in the outbox of this machine, nil for none. A clone never sends the report of the machine that it was
// made from.
func (s *Session) waiting(ctx context.Context, box state.Outbox) (*state.Outgoing, error) {
	id, err := s.machineID(ctx)
	if err != nil {
		return nil, err
	}
	o, err := box.Load()
	if id != "" && s.store == nil && err == nil {
		o = nil
	}
	return o, err
}

// sendWaiting tries once to deliver a report.
func (s *Session) sendWaiting(ctx context.Context, box state.Outbox, o state.Outgoing) (string, error) {
	try, cancel := context.WithTimeout(ctx, min(s.o.Timeout, sendTime))
	defer cancel()
	err := s.send(try, nil, o)
	answer, after := outbox.Classify(o, err)
	switch answer {
	case outbox.Delivered:
		s.forgetReport(ctx, o.Sequence)
		return "the report is delivered", nil
	case outbox.Refused, outbox.NotWanted:
		s.forgetReport(ctx, o.Sequence)
		e := pluginv1.AsError(err)
		return "", &report.Error{Code: e.Code.String(), Message: "the report is dropped: " + e.Error(), Hint: e.Hint}
	}
	message := "the report was not sent: " + sendError(err)
	o = outbox.Failed(o, clock(), time.Now().UTC(), after, rand.Float64())
	if err := box.Update(o); err != nil {
		return "", stateError(err)
	}
	return "", &report.Error{
		Code: report.CodeDeadline, Message: message,
		Hint: fmt.Sprintf("it is tried again in %s, until 24 hours after the first try", o.Pause.Round(time.Second)),
	}
}
