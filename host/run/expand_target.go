package run

import (
	"context"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
)

// checkTarget validates where the report goes.
func (x *expander) checkTarget(ctx context.Context, want *v1alpha1.ReportTarget, by *candidate, r resolve.Request) error {
	if !slices.Contains(by.plugin.Description.Capabilities, pluginv1.CapabilityReport) {
		return &pluginv1.Error{
			Code: pluginv1.CodeUnsupported, Message: "the provider " + want.Spec.Provider + " keeps no reports",
			Violations: []document.Violation{{Field: "spec.provider", Message: "keeps no reports", Hint: "name a provider that does"}},
		}
	}
	return by.plugin.Source.Report(ctx, pluginv1.ReportRequest{Document: r.Document, Target: r.Target, ValidateOnly: true})
}

// unsent makes a warning of whatever keeps the report of the run from being sent: it neither fails nor delays a run. What is wrong in
// the document itself and a plugin that is not trusted remain errors, and a validation reports all of them.
func (x *expander) unsent(d doc, s source) source {
	wrong := s.result.problems
	if s.pending != nil {
		wrong = d.fromPlugin(s.result.by, s.pending)
	}
	fatal := func(p problem) bool {
		return p.err.Code == pluginv1.CodeInvalidConfig.String() || p.err.Code == report.CodeUntrusted
	}
	if d.Kind != v1alpha1.KindReportTarget || x.o.Mode == ModeValidate || len(wrong) == 0 || slices.ContainsFunc(wrong, fatal) {
		return s
	}
	message := "the report cannot be sent: " + textAt(wrong[0].err.Field, wrong[0].err.Message)
	if hint := wrong[0].err.Hint; hint != "" {
		message += "; " + hint
	}
	out := x.warn(d, result{by: s.result.by, took: s.result.took}, pluginv1.Warning{Message: message})
	return source{result: out.end(report.Unchanged, "")}
}
