package run

import (
	"context"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
)

type applyFunc = func(context.Context, string, func(pluginv1.Event) error) (pluginv1.Finished, error)

// applyEnds returns an Apply that starts a change and then ends with f and err.
func applyEnds(f pluginv1.Finished, err error) applyFunc {
	return func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if err := send(pluginv1.Started{Change: oneChange().Changes[0]}); err != nil {
			return pluginv1.Finished{}, err
		}
		return f, err
	}
}

func reboots(r pluginv1.Reboot) applyFunc {
	return func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{}, change(send, pluginv1.Change{ID: "a", Summary: "do a", Reboot: r})
	}
}

// retryThen returns an Apply that starts the change and answers Retry, and calls rest at the second try.
func retryThen(rest applyFunc) applyFunc {
	tries := 0
	return func(ctx context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		if tries++; tries == 1 {
			return applyEnds(pluginv1.Finished{Error: &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "busy"}}, nil)(ctx, name, send)
		}
		return rest(ctx, name, send)
	}
}

// things returns a stream with one Thing for each spec, named a, b, c ...
func things(specs ...string) []byte {
	var b strings.Builder
	for i, spec := range specs {
		fmt.Fprintf(&b, "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %c}\nspec: %s\n", 'a'+i, spec)
	}
	return []byte(b.String())
}

func outcomes(r report.Report) string {
	var out []string
	for _, d := range r.Documents {
		text := string(d.Outcome)
		if d.Reason != "" {
			text += "/" + d.Reason
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func errorsOf(r report.Report) string {
	var out []string
	for _, e := range r.Errors {
		out = append(out, e.Code+": "+e.Message)
	}
	return strings.Join(out, "\n")
}

const named = "{provider: x}"

func invalid(fields ...string) error {
	e := &pluginv1.Error{Code: pluginv1.CodeInvalidConfig}
	for _, f := range fields {
		e.Violations = append(e.Violations, document.Violation{Field: f, Message: "is wrong"})
	}
	return e
}

func precondition(text string) error {
	return &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: text, Hint: "do something"}
}

func unsupported(text string) error {
	return &pluginv1.Error{Code: pluginv1.CodeUnsupported, Message: text}
}

// planFor returns errors for some documents, and one change for the others.
func planFor(answers map[string]error) func(string, int) (pluginv1.Plan, error) {
	return func(name string, _ int) (pluginv1.Plan, error) {
		if err, ok := answers[name]; ok {
			return pluginv1.Plan{}, err
		}
		return oneChange(), nil
	}
}
