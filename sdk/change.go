package sdk

import (
	"context"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Plan is what a plan function returns: the changes still missing, in the order in which they are made.
type Plan struct {
	Changes  []Change
	Warnings []Warning
}

// Add appends the changes that are not nil: helpers return nil for what is already so.
func (p *Plan) Add(changes ...*Change) {
	for _, c := range changes {
		if c != nil {
			p.Changes = append(p.Changes, *c)
		}
	}
}

// Warn appends a warning. Field is a field path, or empty.
func (p *Plan) Warn(field, message string) {
	p.Warnings = append(p.Warnings, Warning{Field: field, Message: message})
}

// Warning is worth a person's look and stops nothing.
type Warning = pluginv1.Warning

// Reboot says when a change needs the machine to reboot. The host alone reboots.
type Reboot = pluginv1.Reboot

// When a change needs a reboot.
const (
	RebootNone       = pluginv1.RebootNone
	RebootAfterRun   = pluginv1.RebootAfterRun   // once every document is done
	RebootBeforeNext = pluginv1.RebootBeforeNext // before the next document
)

// Change is one step that a machine still needs.
//
// A change must be whole when its process dies right after it, and harmless when it is made again.
type Change struct {
	// ID is stable and unique within the document, for example "file:/etc/motd".
	ID string
	// Summary is one line for people.
	Summary string
	// Diff is a unified diff; "content differs" where the old or the new side is not for everyone's eyes.
	Diff string
	// Interruptible lets Stop cancel the context of Do, with the cause ErrStopped: for changes that mostly wait. Do then
	// returns the context's error, and the change is made again by a later run. Any other change is finished first.
	Interruptible bool
	// NeedsLive marks what is impossible in an image root and left for first boot.
	NeedsLive bool
	// Reboot says whether the change needs a reboot.
	Reboot Reboot
	// Do makes the change. Its context ends with the time limit of the document.
	Do func(ctx context.Context, p Progress) error
}

// Progress is how a change that is being made speaks to the host.
type Progress interface {
	// Report is a sign of life: one line for people.
	Report(message string)
	// Warn reports what is worth a person's look. Field is a field path, or empty.
	Warn(field, message string)
	// RequestReboot asks for a reboot that turned out to be needed.
	RequestReboot(r Reboot)
}
