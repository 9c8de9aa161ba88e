package run

import (
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

// planned is a document with its plan.
type planned struct {
	doc
	plan    pluginv1.Plan
	pending *pluginv1.Error // Precondition or Retry: the document is planned again at its turn
	final   *pluginv1.Error // Precondition that no earlier document resolves, as far as none does
	result  result          // settled if the document is not applied
	// another: the providerConfig alone is refused, which may be that of another provider.
	another bool
	// provides are beginnings of ids of claims: what the document can give to later ones; nil for anything.
	provides []string
}

// isElsewhere reports whether the plugin refuses this platform, and no field of the document.
func (p planned) isElsewhere() bool {
	return p.pending != nil && p.pending.Code == pluginv1.CodeUnsupported && len(p.pending.Violations) == 0
}

// preview returns the result of a successful Apply of the plan.
func (p planned) preview(image bool) result {
	out := p.result.warn(p.plan.Warnings...)
	for _, c := range p.plan.Changes {
		outcome := report.Changed
		if image && c.NeedsLive {
			outcome = report.Deferred
		}
		out = out.add(report.Change{ID: c.ID, Summary: c.Summary, Outcome: outcome})
	}
	return out
}

// outcome returns the result of a document in ModePlan.
func (p planned) outcome(image bool) result {
	out := p.preview(image)
	switch {
	case out.settled || p.pending != nil:
		return out
	case len(p.plan.Changes) == 0:
		return out.end(report.Unchanged, "")
	case p.deferred(image) > 0:
		return out.end(report.Deferred, report.ReasonLive)
	default:
		return out.end(report.Changed, "")
	}
}

// deferred returns the number of changes that an image defers to first boot.
func (p planned) deferred(image bool) int {
	n := 0
	for _, c := range p.plan.Changes {
		if image && c.NeedsLive {
			n++
		}
	}
	return n
}

// needsReboot reports whether a change of the plan requests a reboot.
func (p planned) needsReboot() bool {
	return slices.ContainsFunc(p.plan.Changes, func(c pluginv1.Change) bool { return c.Reboot != pluginv1.RebootNone })
}

// claims returns the claims of a document, which a pending one can have too.
func (p planned) claims() []pluginv1.Claim {
	if p.pending != nil {
		return p.pending.Claims
	}
	return p.plan.Claims
}

// writes returns the absolute paths of the files that a document claims.
func (p planned) writes() []string {
	var out []string
	for _, c := range p.claims() {
		if path, _, ok := pluginv1.ClaimedFile(c.ID); ok {
			out = append(out, path)
		}
	}
	return out
}

// lastOpen returns the index of the last document that has a turn, or -1.
func lastOpen(all []planned) int {
	for i, p := range slices.Backward(all) {
		if !p.result.settled {
			return i
		}
	}
	return -1
}
