package values

import (
	"cmp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// Planned is a document with its plan.
type Planned struct {
	Doc
	Plan    pluginv1.Plan
	Pending *pluginv1.Error // Precondition or Retry: the document is planned again at its turn
	Final   *pluginv1.Error // Precondition that no earlier document resolves, as far as none does
	Result  Result          // settled if the document is not applied
	// another: the providerConfig alone is refused, which may be that of another provider.
	Another bool
	// provides are beginnings of ids of claims: what the document can give to later ones; nil for anything.
	Provides []string
}

// IsElsewhere reports whether the plugin refuses this platform, and no field of the document.
func (p Planned) IsElsewhere() bool {
	return p.Pending != nil && p.Pending.Code == pluginv1.CodeUnsupported && len(p.Pending.Violations) == 0
}

// Preview returns the result of a successful Apply of the plan.
func (p Planned) Preview(image bool) Result {
	out := p.Result.Warn(p.Plan.Warnings...)
	for _, c := range p.Plan.Changes {
		outcome := report.Changed
		if image && c.NeedsLive {
			outcome = report.Deferred
		}
		out = out.Add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: outcome})
	}
	return out
}

// Outcome returns the result of a document in a run that only plans.
func (p Planned) Outcome(image bool) Result {
	out := p.Preview(image)
	switch {
	case out.Settled || p.Pending != nil:
		return out
	case len(p.Plan.Changes) == 0:
		return out.End(report.Unchanged, "")
	case p.Deferred(image) > 0:
		return out.End(report.Deferred, report.ReasonLive)
	default:
		return out.End(report.Changed, "")
	}
}

// Deferred returns the number of changes that an image defers to first boot.
func (p Planned) Deferred(image bool) int {
	n := 0
	for _, c := range p.Plan.Changes {
		if image && c.NeedsLive {
			n++
		}
	}
	return n
}

// NeedsReboot reports whether a change of the plan requests a reboot.
func (p Planned) NeedsReboot() bool {
	return slices.ContainsFunc(p.Plan.Changes, func(c pluginv1.Change) bool { return c.Reboot != pluginv1.RebootNone })
}

// Claims returns the claims of a document, which a pending one can have too.
func (p Planned) Claims() []pluginv1.Claim {
	if p.Pending != nil {
		return p.Pending.Claims
	}
	return p.Plan.Claims
}

// Writes returns the absolute paths of the files that a document claims.
func (p Planned) Writes() []string {
	var out []string
	for _, c := range p.Claims() {
		if path, _, ok := pluginv1.ClaimedFile(c.ID); ok {
			out = append(out, path)
		}
	}
	return out
}

// LastOpen returns the index of the last document that has a turn, or -1.
func LastOpen(all []Planned) int {
	for i, p := range slices.Backward(all) {
		if !p.Result.Settled {
			return i
		}
	}
	return -1
}

// MayCause reports whether an error of the document's turn is not of documents that were resolved at its turn, while it is in order.
func (p *Planned) MayCause(err error) bool {
	own := AsProblems(err)
	return len(own) == 0 || own[0].ID == "" || own[0].ID == p.ID
}

// LimitAfter adds the message of the last Retry, if any, to the error of a time limit or of an interruption, which alone names no cause.
func (p *Planned) LimitAfter(earlier string, err error) error {
	own := AsProblems(err)
	if earlier != "" && p.MayCause(err) && len(own) > 0 && (own[0].Err.Code == report.CodeDeadline || own[0].Err.Code == report.CodeInterrupted) {
		own[0].Err.Message += "; the last try: " + earlier
	}
	return err
}

// IsPlanned reports whether a document has a plan, which says what it changes and claims.
func (p Planned) IsPlanned() bool { return p.Pending == nil && p.Result.Outcome != report.Failed }

// Gives reports whether a document can give what another one needs: by a claim of this id, or of any with this beginning, or without a
// plan by what its kind provides.
func (p Planned) Gives(need string) bool {
	return need != "" && slices.ContainsFunc(p.Claims(), func(c pluginv1.Claim) bool {
		return !c.Assumed && (c.ID == need || strings.HasSuffix(need, ":") && strings.HasPrefix(c.ID, need))
	}) || !p.IsPlanned() && slices.ContainsFunc(p.Provides, func(id string) bool { return strings.HasPrefix(cmp.Or(need, anyFile), id) })
}

// anyFile is what a kind provides whose documents write files for later ones, and what a Precondition needs that names nothing.
const anyFile = "file:"
