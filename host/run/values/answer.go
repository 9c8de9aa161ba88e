package values

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

// FromPlugin returns the problems for an error of a plugin: one for each violation, located at its field.
func (d Doc) FromPlugin(by *Candidate, err error) Problems {
	if errors.Is(err, pluginv1.ErrCrashed) {
		by.Plugin.Kill() // completes its stderr
		return d.WithLog(by, report.Error{
			Code: report.CodeCrashed, Message: fmt.Sprintf("the plugin %s crashed: %s", by.Binary, err),
		})
	}
	e := pluginv1.AsError(err)
	base := report.Error{Code: e.Code.String(), Message: e.Message, Hint: e.Hint, Facts: e.Facts}
	detail := e.Detail
	if e.Code == pluginv1.CodeInternal {
		base.Hint = fmt.Sprintf("report this defect of the plugin %s to its author", by.Binary)
		if detail = joinDetails(e.Detail, by.stderr()); detail != "" {
			base.Hint += ", with details.json"
		}
	}
	var out Problems
	for _, v := range e.Violations[:min(len(e.Violations), document.MaxErrors)] {
		here := base
		here.Hint = cmp.Or(e.Hint, v.Hint)
		if e.Code == pluginv1.CodeInvalidConfig || here.Message == "" || len(e.Violations) > 1 {
			here.Message, here.Hint = cmp.Or(v.Message, e.Message), cmp.Or(v.Hint, e.Hint)
		}
		out = append(out, d.Problem(v.Field, here)...)
	}
	if more := len(e.Violations) - document.MaxErrors; more > 0 {
		out = append(out, d.Problem("", report.Error{
			Code: base.Code, Message: fmt.Sprintf("has %d more errors", more), Hint: "correct those that are listed first",
		})...)
	}
	if len(out) == 0 {
		out = d.Problem("", base)
	}
	out[0].Detail = detail
	return out
}

// WithLog returns an error of a plugin with the end of its log.
func (d Doc) WithLog(by *Candidate, e report.Error) Problems {
	out := d.Problem("", e)
	out[0].Err.Hint, out[0].Detail = rerunHint, by.stderr()
	if out[0].Detail != "" {
		out[0].Err.Hint = "read the end of the plugin's log in details.json; " + rerunHint
	}
	return out
}

func joinDetails(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n--- stderr of the plugin ---\n" + b
}

// FromLaunch returns the problem of a plugin that was not found or did not start.
func (d Doc) FromLaunch(binary string, err error) Problems {
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
	out := d.Problem(field, e)
	out[0].Detail = detail
	return out
}

// NotFound is FromLaunch for a failed search. For a misspelled kind of the contract, or a misspelled provider, the hint is the
// correct one.
func (d Doc) NotFound(binary string, providers []string, err error) Problems {
	out := d.FromLaunch(binary, err)
	group, _, _ := strings.Cut(d.APIVersion, "/")
	kind, provider := document.SuggestKind(d.Kind), document.Nearest(d.Provider, providers)
	switch {
	case group == v1alpha1.Group && kind != "" && kind != d.Kind:
		out[0].Err.Hint = "did you mean the kind " + kind + "?"
	case provider != "" && provider != d.Provider:
		out[0].Err.Hint = "did you mean the provider " + provider + "?"
	}
	return out
}

// Unserved returns the problem of a version that the plugin does not serve. An unknown version of a kind of the contract is
// InvalidConfig; for any other kind, plugin and document do not match.
func (d Doc) Unserved(binary string, described pluginv1.Description) Problems {
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
	e.Hint = cmp.Or(d.APIVersionHint(), e.Hint)
	if _, version, _ := strings.Cut(d.APIVersion, "/"); d.ours() && version != "v1alpha1" {
		e.Code = pluginv1.CodeInvalidConfig.String()
	}
	return d.Problem("apiVersion", e)
}

// APIVersionHint returns a hint for a kind of the contract that is written with the group of another, or "".
func (d Doc) APIVersionHint() string {
	if d.ours() || v1alpha1.New(d.Kind) == nil {
		return ""
	}
	return "did you mean apiVersion: " + v1alpha1.APIVersion + "?"
}

// ApplyTimeout returns the limit of the document over all its tries.
func (d Doc) ApplyTimeout() time.Duration {
	if d.Timeout > 0 {
		return d.Timeout
	}
	return v1alpha1.DefaultTimeout
}

// TimedOut returns the problem of a document that exceeded its limit.
func (d Doc) TimedOut(by *Candidate) Problems {
	out := d.Problem("metadata.timeout", report.Error{
		Code: report.CodeDeadline, Message: fmt.Sprintf("applying it took longer than its %s", d.ApplyTimeout()),
		Hint: "raise metadata.timeout if it needs longer; " + rerunHint,
	})
	out[0].Detail = by.stderr()
	return out
}

// Expired reports whether err is that of an ended context: of the host, or of a plugin that cancelled by itself.
func Expired(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// SelfCancelled is the defect of a plugin that cancelled a call which the host did not cancel.
func SelfCancelled(err error) error {
	return &pluginv1.Error{Message: "the plugin cancelled the call without a request: " + err.Error()}
}

// ViolationsText returns the fields and messages of the violations of an error.
func ViolationsText(e *pluginv1.Error) string {
	var texts []string
	for _, v := range e.Violations {
		texts = append(texts, TextAt(v.Field, v.Message))
	}
	return strings.Join(texts, "; ")
}

// TextOf returns the message of an error or, without one, its violations.
func TextOf(e *pluginv1.Error) string { return cmp.Or(e.Message, ViolationsText(e)) }

// RefusalText returns the message and every violation, without a message that repeats the first of them, as the SDK's does.
func RefusalText(e *pluginv1.Error) string {
	violations := ViolationsText(e)
	if violations == "" || strings.HasPrefix(e.Message, e.Violations[0].Message) {
		return cmp.Or(violations, e.Message)
	}
	return TextAt(e.Message, violations)
}

// AwaitDeadline waits for the end of the context of a call that ended as too late: gRPC sends the deadline to the plugin, whose answer
// can arrive just before the timer of the context fires.
func AwaitDeadline(call context.Context) {
	if deadline, ok := call.Deadline(); ok && time.Until(deadline) < time.Second {
		<-call.Done()
	}
}
