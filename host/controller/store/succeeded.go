package store

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// Machine is what the condition needs of a machine beside its report.
type Machine struct {
	// Provisioned is when its infrastructure was there, zero before.
	Provisioned time.Time
	// Joined says that it has a node.
	Joined bool
	// Unseen says that the manager does not see when it fetches its documents.
	Unseen bool
}

// Succeeded is the condition BootstrapSucceeded, without its type, and when it may change without a report; 0 for never.
func Succeeded(b *bootstrap.BootstrapStatus, m Machine, deadline time.Duration, now time.Time) (metav1.Condition, time.Duration) {
	if b != nil && b.Sequence > 0 {
		return unfinished(b, m, deadline, now)
	}
	waits := metav1.Condition{Status: metav1.ConditionUnknown, Reason: bootstrap.ReasonNoReport}
	since := m.Provisioned
	switch {
	case b != nil && b.FetchedAt != nil:
		since = b.FetchedAt.Time
		waits.Reason = bootstrap.ReasonRunning
		waits.Message = "the machine fetched its documents at " + since.UTC().Format(time.RFC3339) + ", and has not reported"
	case m.Provisioned.IsZero() && !m.Joined:
		waits.Message = "the machine is not provisioned"
		return waits, 0
	case m.Unseen:
		waits.Message = "the machine is provisioned, and has not reported"
	default:
		waits.Message = "the machine is provisioned, and has not fetched its documents"
	}
	left := deadline - now.Sub(since)
	switch {
	case m.Joined:
		waits.Message += "; it has a node"
		return waits, 0
	case left > 0:
		return waits, left
	}
	waits.Status, waits.Reason = metav1.ConditionFalse, bootstrap.ReasonNoReport
	waits.Message += fmt.Sprintf(" in %s: look at its console, and at machineadm status on it", deadline)
	return waits, 0
}

// unfinished is the condition of a machine that has sent a report, and says when one that is not over has been silent for too long.
func unfinished(b *bootstrap.BootstrapStatus, m Machine, deadline time.Duration, now time.Time) (metav1.Condition, time.Duration) {
	c := reported(b)
	if c.Status != metav1.ConditionUnknown || m.Joined || b.ReportedAt == nil {
		return c, 0
	}
	if left := deadline - now.Sub(b.ReportedAt.Time); left > 0 {
		return c, left
	}
	c.Status, c.Reason = metav1.ConditionFalse, bootstrap.ReasonNoReport
	c.Message += fmt.Sprintf("; the machine has not reported in %s: look at its console, and at machineadm status on it", deadline)
	return c, 0
}

// reported is the condition of a machine that has sent a report.
func reported(b *bootstrap.BootstrapStatus) metav1.Condition {
	c := metav1.Condition{Status: metav1.ConditionFalse, Reason: reasonOf(b), Message: b.Message}
	switch report.Outcome(b.Outcome) {
	case report.RunSucceeded:
		c.Status, c.Reason = metav1.ConditionTrue, bootstrap.ReasonSucceeded
	case report.RunRunning, report.RunRebootRequired:
		c.Status, c.Reason = metav1.ConditionUnknown, bootstrap.ReasonRunning
	}
	return c
}
