package conformance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// quotes replaces one text of the document after the other by a word that most fields refuse. A value that a Precondition
// names, such as the path of a missing file, was accepted as what it is; a refused value can be anything, also a secret.
func quotes(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	d, err := p.describe(ctx, f.planning(), false)
	if err != nil {
		return skipped("Describe fails, see describe"), nil //nolint:nilerr // describe reports it
	}
	h := f.runner.c.header
	if !slices.ContainsFunc(d.Kinds, func(k pluginv1.Kind) bool {
		return k.APIVersion == h.apiVersion && k.Kind == h.kind && len(k.SecretFields) > 0
	}) {
		return skipped("documents of the kind hold no secret"), nil
	}
	fields, err := fieldsWith(f.runner.document, "")
	if err != nil {
		return result{}, err
	}
	for _, field := range fields {
		if !strings.HasPrefix(field, "spec.") || field == "spec.provider" {
			continue
		}
		word := newCanary()
		doc, err := replaceField(f.runner.document, field, "not "+word)
		if err != nil {
			return result{}, err
		}
		_, err = p.plan(ctx, withDocument(f.planning(), doc))
		e := contractError(err)
		if e == nil || e.Code != pluginv1.CodeInvalidConfig && e.Code != pluginv1.CodeUnsupported {
			continue
		}
		if strings.Contains(e.Message+e.Hint+texts(e.Violations), word) {
			return failed(finding{
				clause: "G-3", expected: "an error names the field and the rule, and quotes no value that it refuses",
				got:   fmt.Sprintf("with another text in %s, the error of Plan quotes it", field),
				cause: "the message is made of the value, or comes from a parser; name the field and what is permitted there",
			}), nil
		}
	}
	return passed(), nil
}

// replaceField returns the document with another text in a field.
func replaceField(data []byte, field, text string) ([]byte, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	return encode(walk(root, "", func(p document.Path, old string) any {
		if string(p) == field {
			return text
		}
		return old
	}))
}
