package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/launch"
)

const rerunHint = "running again is safe"

// fromPlugin returns the problems for an error of a plugin: one for each violation, located at its field.
func (d doc) fromPlugin(by *candidate, err error) problems {
	if errors.Is(err, pluginv1.ErrCrashed) {
		by.plugin.Kill() // completes its stderr
		return d.withLog(by, report.Error{
			Code: report.CodeCrashed, Message: fmt.Sprintf("the plugin %s crashed: %s", by.binary, err),
		})
	}
	e := pluginv1.AsError(err)
	base := report.Error{Code: e.Code.String(), Message: e.Message, Hint: e.Hint, Facts: e.Facts}
	detail := e.Detail
	if e.Code == pluginv1.CodeInternal {
		base.Hint = fmt.Sprintf("report this defect of the plugin %s to its author", by.binary)
		if detail = joinDetails(e.Detail, by.stderr()); detail != "" {
			base.Hint += ", with details.json"
		}
	}
	var out problems
	for _, v := range e.Violations[:min(len(e.Violations), document.MaxErrors)] {
		here := base
		here.Hint = cmp.Or(e.Hint, v.Hint)
		if e.Code == pluginv1.CodeInvalidConfig || here.Message == "" || len(e.Violations) > 1 {
			here.Message, here.Hint = cmp.Or(v.Message, e.Message), cmp.Or(v.Hint, e.Hint)
		}
		out = append(out, d.problem(v.Field, here)...)
	}
	if more := len(e.Violations) - document.MaxErrors; more > 0 {
		out = append(out, d.problem("", report.Error{
			Code: base.Code, Message: fmt.Sprintf("has %d more errors", more), Hint: "correct those that are listed first",
		})...)
	}
	if len(out) == 0 {
		out = d.problem("", base)
	}
	out[0].detail = detail
	return out
}

// withLog returns an error of a plugin with the end of its log.
func (d doc) withLog(by *candidate, e report.Error) problems {
	out := d.problem("", e)
	out[0].err.Hint, out[0].detail = rerunHint, by.stderr()
	if out[0].detail != "" {
		out[0].err.Hint = "read the end of the plugin's log in details.json; " + rerunHint
	}
	return out
}

func joinDetails(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n--- stderr of the plugin ---\n" + b
}

// fromLaunch returns the problem of a plugin that was not found or did not start.
func (d doc) fromLaunch(binary string, err error) problems {
	exit, code := launch.Classify(err)
	e := report.Error{Code: code, Message: fmt.Sprintf("plugin %s: %s", binary, err), Hint: launch.Hint(err)}
	var failed *launch.StartError
	detail := ""
	switch {
	case errors.As(err, &failed):
		detail = failed.Stderr
	case exit == report.ExitFailed: // the search failed, or the file could not be read
		e.Code = report.CodeNoPlugin
		e.Hint = "see that this user may read the plugin directories and what is in them"
	}
	field := ""
	if d.Provider != "" {
		field = "spec.provider"
	}
	out := d.problem(field, e)
	out[0].detail = detail
	return out
}

// notFound is fromLaunch for a failed search. For a misspelled kind of the contract, or a misspelled provider, the hint is the
// correct one.
func (d doc) notFound(binary string, providers []string, err error) problems {
	out := d.fromLaunch(binary, err)
	group, _, _ := strings.Cut(d.APIVersion, "/")
	kind, provider := document.SuggestKind(d.Kind), document.Nearest(d.Provider, providers)
	switch {
	case group == v1alpha1.Group && kind != "" && kind != d.Kind:
		out[0].err.Hint = "did you mean the kind " + kind + "?"
	case provider != "" && provider != d.Provider:
		out[0].err.Hint = "did you mean the provider " + provider + "?"
	}
	return out
}

// unserved returns the problem of a version that the plugin does not serve. An unknown version of a kind of the contract is
// InvalidConfig; for any other kind, plugin and document do not match.
func (d doc) unserved(binary string, described pluginv1.Description) problems {
	var served []string
	for _, k := range described.Kinds {
		served = append(served, k.Kind+" of "+k.APIVersion)
	}
	e := report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("plugin %s does not serve %s of %s; it serves %s", binary, d.Kind, d.APIVersion,
			cmp.Or(strings.Join(served, ", "), "nothing")),
		Hint: "install a plugin that serves this version, or write the document for one that is served",
	}
	e.Hint = cmp.Or(d.apiVersionHint(), e.Hint)
	if _, version, _ := strings.Cut(d.APIVersion, "/"); d.ours() && version != "v1alpha1" {
		e.Code = pluginv1.CodeInvalidConfig.String()
	}
	return d.problem("apiVersion", e)
}

// apiVersionHint returns a hint for a kind of the contract that is written with the group of another, or "".
func (d doc) apiVersionHint() string {
	if d.ours() || v1alpha1.New(d.Kind) == nil {
		return ""
	}
	return "did you mean apiVersion: " + v1alpha1.APIVersion + "?"
}

// applyTimeout returns the limit of the document over all its tries.
func (d doc) applyTimeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return ApplyTimeout
}

// timedOut returns the problem of a document that exceeded its limit.
func (d doc) timedOut(by *candidate) problems {
	out := d.problem("metadata.timeout", report.Error{
		Code: report.CodeDeadline, Message: fmt.Sprintf("applying it took longer than its %s", d.applyTimeout()),
		Hint: "raise metadata.timeout if it needs longer; " + rerunHint,
	})
	out[0].detail = by.stderr()
	return out
}

// expired reports whether err is that of an ended context: of the host, or of a plugin that cancelled by itself.
func expired(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// selfCancelled is the defect of a plugin that cancelled a call which the host did not cancel.
func selfCancelled(err error) error {
	return &pluginv1.Error{Message: "the plugin cancelled the call without a request: " + err.Error()}
}

func violationsText(e *pluginv1.Error) string {
	var texts []string
	for _, v := range e.Violations {
		texts = append(texts, textAt(v.Field, v.Message))
	}
	return strings.Join(texts, "; ")
}

// textOf returns the message of an error or, without one, its violations.
func textOf(e *pluginv1.Error) string { return cmp.Or(e.Message, violationsText(e)) }

// refusalText returns the message and every violation, without a message that repeats the first of them, as the SDK's does.
func refusalText(e *pluginv1.Error) string {
	violations := violationsText(e)
	if violations == "" || strings.HasPrefix(e.Message, e.Violations[0].Message) {
		return cmp.Or(violations, e.Message)
	}
	return textAt(e.Message, violations)
}
