package answers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Quotes replaces one text of the document after the other by a word that most fields refuse. A value that a Precondition
// names, such as the path of a missing file, was accepted as what it is; a refused value can be anything, also a secret.
func Quotes(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	d, err := p.CallDescribe(ctx, f.Planning(), false)
	if err != nil {
		return rig.Skipped("Describe fails, see describe"), nil //nolint:nilerr // describe reports it
	}
	h := f.Runner.Case.Header
	if !slices.ContainsFunc(d.Kinds, func(k pluginv1.Kind) bool {
		return k.APIVersion == h.APIVersion && k.Kind == h.Kind && len(k.SecretFields) > 0
	}) {
		return rig.Skipped("documents of the kind hold no secret"), nil
	}
	fields, err := testcase.FieldsWith(f.Runner.Document, "")
	if err != nil {
		return rig.Result{}, err
	}
	for _, field := range fields {
		if !strings.HasPrefix(field, "spec.") || field == "spec.provider" {
			continue
		}
		word := testcase.NewCanary()
		doc, err := replaceField(f.Runner.Document, field, "not "+word)
		if err != nil {
			return rig.Result{}, err
		}
		_, err = p.CallPlan(ctx, rig.WithDocument(f.Planning(), doc))
		e := process.ContractError(err)
		if e == nil || e.Code != pluginv1.CodeInvalidConfig && e.Code != pluginv1.CodeUnsupported {
			continue
		}
		if strings.Contains(e.Message+e.Hint+texts(e.Violations), word) {
			return rig.Failed(rig.Finding{
				Clause: "G-3", Expected: "an error names the field and the rule, and quotes no value that it refuses",
				Got:   fmt.Sprintf("with another text in %s, the error of Plan quotes it", field),
				Cause: "the message is made of the value, or comes from a parser; name the field and what is permitted there",
			}), nil
		}
	}
	return rig.Passed(), nil
}

// replaceField returns the document with another text in a field.
func replaceField(data []byte, field, text string) ([]byte, error) {
	root, err := testcase.Parse(data)
	if err != nil {
		return nil, err
	}
	return testcase.Encode(testcase.Walk(root, "", func(p document.Path, old string) any {
		if string(p) == field {
			return text
		}
		return old
	}))
}
