package run

import (
	"fmt"

	"github.com/machineadm/machineadm/contract/report"
)

// progress is what has come of a run so far. A report is folded from it.
type progress struct {
	head     report.Report
	docs     []doc
	results  []result // of docs, by place
	problems problems // of the run and of the stream
	requests []Request
}

// report folds the results into a report and the raw output of other programs, by the name that an error gives.
func (p progress) report() (report.Report, map[string]string) {
	out, details := p.head, map[string]string{}
	out.Errors, out.Documents, out.Reboots = nil, []report.Document{}, nil
	for _, q := range p.requests {
		if q.Asked {
			out.Reboots = append(out.Reboots, report.Reboot{Document: q.Document, When: q.When.String()})
		}
	}
	size, omitted := 0, 0
	place := func(x problem, name string) (int, bool) {
		bytes := len(x.err.Message) + len(x.err.Hint) + len(x.err.Field)
		if size += bytes; size > reportBudget {
			omitted++
			return 0, false
		}
		if x.detail != "" {
			x.err.Details = name
			details[name] = x.detail
		}
		out.Errors = append(out.Errors, x.err)
		return len(out.Errors) - 1, true
	}
	for _, x := range p.problems {
		place(x, "run")
	}
	for i, d := range p.docs {
		r := p.results[i]
		if size += r.size; size > reportBudget {
			size -= r.size
			r.omitted += len(r.changes) + len(r.warnings)
			r.changes, r.warnings = nil, nil
		}
		folded := fold(d, r)
		for _, x := range r.problems {
			if at, ok := place(x, "document-"+d.id); ok {
				folded.Errors = append(folded.Errors, at)
			}
		}
		out.Documents = append(out.Documents, folded)
	}
	if omitted > 0 {
		out.Errors = append(out.Errors, report.Error{
			Code: out.Errors[0].Code, Message: fmt.Sprintf("%d more errors are left out of the report", omitted),
			Hint: "correct those that are listed first",
		})
	}
	return out, details
}

// fold is one document's part of a report, without its errors.
func fold(d doc, r result) report.Document {
	out := report.Document{
		Index: d.Index, ID: d.id, APIVersion: d.APIVersion, Kind: d.Kind, Name: d.Name, Provider: d.Provider,
		Outcome: r.outcome, Reason: r.reason, Changes: r.changes, Warnings: r.warnings, Omitted: r.omitted,
		DurationMs: r.took.Milliseconds(),
	}
	if r.by != nil {
		out.Provider = r.by.provider
		out.Plugin = &report.Plugin{
			Path: r.by.plugin.Path, Version: r.by.plugin.Description.Version, SHA256: r.by.plugin.SHA256,
		}
	}
	return out
}
