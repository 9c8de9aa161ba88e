package values

import (
	"fmt"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/state"
)

// Report returns the report of a run with these results, and the raw output of other programs by the name in the errors.
func Report(
	head report.Report, t Times, requests []state.Request, found Problems, docs []Doc, results []Result,
) (report.Report, map[string]string) {
	out, details := head, map[string]string{}
	out.Errors, out.Documents, out.Reboots, out.Stages = nil, []report.Document{}, nil, t.report()
	for _, q := range requests {
		if q.Asked {
			out.Reboots = append(out.Reboots, report.Reboot{Document: q.Document, When: q.When.String()})
		}
	}
	size, omitted := 0, 0
	add := func(x Problem, name string) bool {
		size += len(x.Err.Message) + len(x.Err.Hint) + len(x.Err.Field)
		if size > ReportBudget {
			omitted++
			return false
		}
		if x.Detail != "" {
			x.Err.Details = name
			details[name] = x.Detail
		}
		out.Errors = append(out.Errors, x.Err)
		return true
	}
	for _, x := range found {
		add(x, "run")
	}
	for i, d := range docs {
		res := results[i]
		if size += res.Size; size > ReportBudget {
			size -= res.Size
			res.Omitted += len(res.Changes) + len(res.Warnings) + len(res.Waits)
			res.Changes, res.Warnings, res.Waits = nil, nil, nil
		}
		folded := Fold(d, res)
		folded.PlanMs = t.Plans[d.ID].Milliseconds()
		for _, x := range res.Problems {
			if add(x, "document-"+d.ID) {
				folded.Errors = append(folded.Errors, len(out.Errors)-1)
			}
		}
		out.Documents = append(out.Documents, folded)
	}
	sortErrors(&out)
	if omitted > 0 {
		out.Errors = append(out.Errors, report.Error{
			Code: out.Errors[0].Code, Message: fmt.Sprintf("%d more errors are left out of the report", omitted),
			Hint: "correct those that are listed first",
		})
	}
	return out, details
}

// Fold returns a document's part of the report, without its errors.
func Fold(d Doc, res Result) report.Document {
	out := report.Document{
		Index: d.Index, ID: d.ID, APIVersion: d.APIVersion, Kind: d.Kind, Name: d.Name, Provider: d.Provider,
		Outcome: res.Outcome, Reason: res.Reason, Changes: res.Changes, Warnings: res.Warnings, Omitted: res.Omitted,
		DurationMs: res.Took.Milliseconds(), StartedAt: res.Began, Waits: res.Waits,
	}
	if res.By != nil {
		out.Provider = res.By.Provider
		out.Plugin = &report.Plugin{
			Path: res.By.Plugin.Path, Version: res.By.Plugin.Description.Version, SHA256: res.By.Plugin.SHA256,
		}
	}
	return out
}
