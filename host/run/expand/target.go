package expand

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
	"github.com/machineadm/machineadm/host/run/values"
)

// checkTarget validates where the report goes.
func (x *Expander) checkTarget(ctx context.Context, want *v1alpha1.ReportTarget, by *values.Candidate, r resolve.Request) error {
	if !slices.Contains(by.Plugin.Description.Capabilities, pluginv1.CapabilityReport) {
		return &pluginv1.Error{
			Code: pluginv1.CodeUnsupported, Message: "the provider " + want.Spec.Provider + " keeps no reports",
			Violations: []document.Violation{{Field: "spec.provider", Message: "keeps no reports", Hint: "name a provider that does"}},
		}
	}
	return by.Plugin.Source.Report(ctx, pluginv1.ReportRequest{Document: r.Document, Target: r.Target, ValidateOnly: true})
}

// unsent makes a warning of whatever keeps the report of the run from being sent: it neither fails nor delays a run. What is wrong in
// the document itself and a plugin that is not trusted remain errors, and a validation reports all of them.
func (x *Expander) unsent(d values.Doc, s values.Source) values.Source {
	wrong := s.Result.Problems
	if s.Pending != nil {
		wrong = d.FromPlugin(s.Result.By, s.Pending)
	}
	fatal := func(p values.Problem) bool {
		return p.Err.Code == pluginv1.CodeInvalidConfig.String() || p.Err.Code == report.CodeUntrusted
	}
	if d.Kind != v1alpha1.KindReportTarget || x.o.Validate || len(wrong) == 0 || slices.ContainsFunc(wrong, fatal) {
		return s
	}
	message := "the report cannot be sent: " + values.TextAt(wrong[0].Err.Field, wrong[0].Err.Message)
	if hint := wrong[0].Err.Hint; hint != "" {
		message += "; " + hint
	}
	out := x.o.Run.Warn(d, values.Result{By: s.Result.By, Took: s.Result.Took}, pluginv1.Warning{Message: message})
	return values.Source{Result: out.End(report.Unchanged, "")}
}
