package outbox

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/state"
)

// Send passes a report to the plugin of its destination, once.
func Send(ctx context.Context, source pluginv1.Source, capabilities []string, o state.Outgoing, t target.Target) error {
	if !slices.Contains(capabilities, pluginv1.CapabilityReport) {
		return &pluginv1.Error{
			Code: pluginv1.CodeUnsupported, Message: "the provider keeps no reports", Hint: "name one that does in a ReportTarget",
		}
	}
	return source.Report(ctx, pluginv1.ReportRequest{Document: o.Document, Target: t, Report: o.Report, Sequence: o.Sequence})
}

// Answer is what follows a try to deliver a report.
type Answer int

// The answers to a try.
const (
	Delivered Answer = iota
	Again            // not delivered: another try can succeed
	Refused          // not delivered: no other try can succeed
	NotWanted        // not delivered: no document asks for it, and the provider keeps no reports
)

// Classify returns what follows the error of a try. after is the least pause before the next one, 0 for any.
func Classify(o state.Outgoing, err error) (a Answer, after time.Duration) {
	if err == nil {
		return Delivered, 0
	}
	var e *pluginv1.Error
	if !errors.As(err, &e) || errors.Is(err, pluginv1.ErrCrashed) {
		return Again, 0
	}
	switch {
	case e.Code == pluginv1.CodeUnsupported && !named(o.Document):
		return NotWanted, 0
	case e.Code == pluginv1.CodeUnsupported, e.Code == pluginv1.CodeInvalidConfig:
		return Refused, 0
	}
	return Again, e.RetryAfter
}
