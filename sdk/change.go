package sdk

import (
	"context"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// Plan is what a plan function returns: the changes still missing, in the order in which they are made. Beside a Precondition or Retry it has
// only the warnings that hold whatever is missing: validation, which looks at no machine, often ends there.
type Plan struct {
	Changes  []Change
	Warnings []Warning
	// Needs are ids as of the function Needs: what the changes need of other documents, whether or not the machine has it. The host warns
	// where it looks at no running machine and only a later document of the stream has the claim.
	Needs []string
}

// Add appends the changes that are not nil: helpers return nil for what already matches.
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

// Warning is a message for the operator. It does not stop the run.
type Warning = pluginv1.Warning

// Reboot is the time at which a change needs a reboot, which only the host does.
type Reboot = pluginv1.Reboot

// The times of a reboot.
const (
	RebootNone       = pluginv1.RebootNone
	RebootAfterRun   = pluginv1.RebootAfterRun   // once every document is done
	RebootBeforeNext = pluginv1.RebootBeforeNext // before the next document
)

// Change is a step from the current to the desired state.
//
// A change must survive the death of its process right after it, and must be repeatable.
type Change struct {
	// ID is stable and unique within the document, for example "file:/etc/motd".
	ID string
	// Summary is one line of text.
	Summary string
	// Diff is a unified diff, or "content differs" where not everyone may read the old or the new side.
	Diff string
	// Interruptible lets Stop cancel the context of Do, with the cause ErrStopped: for changes that mostly wait. Do then
	// returns the context's error, and the change is made again by a later run. Any other change is finished first.
	Interruptible bool
	// NeedsLive marks a change that is impossible in an image root and left for first boot.
	NeedsLive bool
	// Reboot is the reboot that the change needs.
	Reboot Reboot
	// Do makes the change. Its context ends with the time limit of the document.
	Do func(ctx context.Context, p Progress) error

	// rehearse makes what Do does to files of the machine, by its FS alone; nil where that cannot be known before. Plan calls it with an FS
	// that keeps changes in memory, so that it meets the errors of Apply.
	rehearse func(ctx context.Context) error
	field    string // of the document, for the errors of rehearse
}

// ofFiles makes a change whose Do changes nothing but files of the machine, by its FS alone.
func (c *Change) ofFiles(m Machine, do func(ctx context.Context) error) *Change {
	c.rehearse, c.field = do, m.FieldPath()
	c.Do = func(ctx context.Context, _ Progress) error { return do(ctx) }
	return c
}

// rehearse returns the first error that the changes of a plan would meet on the machine's files. Earlier documents are planned into
// these files, so that only an operator can remove its cause.
func rehearse(ctx context.Context, m Machine, plan Plan) error {
	if !m.FS.Rehearses() {
		return nil
	}
	for _, c := range plan.Changes {
		if c.rehearse == nil || m.Offline() && c.NeedsLive {
			continue
		}
		if err := c.rehearse(ctx); err != nil {
			err = Final(err)
			if c.field != "" {
				err = At(err, c.field)
			}
			return fault.Classify(ctx, err)
		}
	}
	return nil
}

// Progress sends events of a change to the host while the change is made.
type Progress interface {
	// Report sends one line of text.
	Report(message string)
	// Warn sends a warning. Field is a field path, or empty.
	Warn(field, message string)
	// RequestReboot requests a reboot.
	RequestReboot(r Reboot)
}
