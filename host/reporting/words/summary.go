package words

import (
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/report"
)

// Summary counts the documents of an apply by outcome.
func Summary(r *report.Report) string {
	if r.Outcome == report.RunInvalid {
		return InvalidSummary(r)
	}
	c := Count(r)
	text := fmt.Sprintf("%s: %s: %d changed%s, %d unchanged, %d deferred", RunWord(r.Outcome), Documents(len(r.Documents)),
		c[report.Changed], InPart(r), c[report.Unchanged], c[report.Deferred])
	return text + Rest(c, report.NotApplicable, report.RebootRequired, report.Failed, report.Skipped)
}

// InvalidSummary counts errors, because no document was applied.
func InvalidSummary(r *report.Report) string {
	text := "Invalid: " + Counted(len(r.Errors), "error")
	if len(r.Documents) > 0 {
		text += " in " + Documents(len(r.Documents))
	}
	return text + "; nothing was changed"
}

// Count counts documents by outcome. A partly deferred document counts as changed.
func Count(r *report.Report) map[report.Outcome]int {
	out := map[report.Outcome]int{}
	for _, d := range r.Documents {
		if partly(d) {
			out[report.Changed]++
		} else {
			out[d.Outcome]++
		}
	}
	return out
}

// partly reports whether some changes of a document are done and the others deferred to first boot.
func partly(d report.Document) bool {
	return d.Outcome == report.Deferred && slices.ContainsFunc(d.Changes, func(c report.Change) bool { return c.Outcome == report.Changed })
}

// InPart returns the number of partly deferred documents, as text.
func InPart(r *report.Report) string {
	n := 0
	for _, d := range r.Documents {
		if partly(d) {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (%d in part, the rest deferred)", n)
}

// Rest lists how many documents have each of these outcomes, leaving out outcomes that none has.
func Rest(counts map[report.Outcome]int, outcomes ...report.Outcome) string {
	text := ""
	for _, o := range outcomes {
		if counts[o] > 0 {
			text += fmt.Sprintf(", %d %s", counts[o], OutcomeWord(o))
		}
	}
	return text
}

// Documents returns a number of documents, as text.
func Documents(n int) string { return Counted(n, "document") }

// Counted returns a number with its noun, in the plural unless it is one.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
