package conformance

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1/cases"
)

// kindMeans plans the documents that the contract has for the kind, on the tree of this case, in which the plugin can apply its own.
func kindMeans(ctx context.Context, f *fixture) (result, error) {
	of := f.runner.c.header
	shared, err := sharedCases(of)
	if err != nil {
		return result{}, err
	}
	if len(shared) == 0 || f.runner.c.refused() {
		return skipped("the contract has no documents of the kind, or the document is refused"), nil
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	var wrong []string
	for _, c := range shared {
		doc, err := c.document(f.runner.canary, nil)
		if err != nil {
			return result{}, err
		}
		plan, err := p.plan(ctx, withDocument(f.planning(), doc))
		if errors.As(err, new(*crash)) {
			return result{}, err
		}
		if err != nil && tracesOf(f.runner.canary).in([]byte(explained(err))) {
			return failed(finding{
				clause: "G-23", expected: "no answer repeats a secret of the document", got: c.Name + ": the error repeats the value of a secret field",
				cause: "a message that quotes what it refuses",
			}), nil
		}
		if said := c.deviation(plan, err, f.runner.claimKey); said != "" {
			wrong = append(wrong, c.Name+": "+said)
		}
	}
	if len(wrong) > 0 {
		return failed(finding{
			clause: "F-20", expected: fmt.Sprintf("the answers of contract/v1alpha1/cases/%s", of.kind),
			got:   fmt.Sprintf("%d of %d documents have another answer:\n%s", len(wrong), len(shared), strings.Join(wrong, "\n")),
			cause: "a rule of the kind that its schema cannot state, or a claim with another id or value than the kind's other providers have",
		}), nil
	}
	return passed(), nil
}

// sharedCases are the cases that the contract has for a kind.
func sharedCases(of header) ([]*Case, error) {
	files, err := cases.For(of.apiVersion, of.kind)
	if err != nil {
		return nil, err
	}
	var all []*Case
	for _, file := range files {
		c := &Case{Name: file.Name, dir: "contract/v1alpha1/cases/" + of.kind + "/" + file.Name, config: file.Config}
		if len(file.Expect) > 0 {
			if err := c.readExpectation(c.dir+"/expect.yaml", file.Expect); err != nil {
				return nil, err
			}
		}
		if _, err := c.document(newCanary(), nil); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// deviation returns how an answer of Plan differs from a case of the contract, or "". What the machine or the provider cannot do is no
// deviation: the case says what the document means.
func (c *Case) deviation(plan pluginv1.Plan, answer error, key []byte) string {
	if c.refused() {
		if e := contractError(answer); e != nil && e.Code == pluginv1.CodeUnsupported && len(e.Violations) == 0 {
			return ""
		}
		return c.checkErrors("Plan", answer).got
	}
	if answer == nil {
		return c.missingClaims(plan, key)
	}
	if e := contractError(answer); e != nil && e.Code != pluginv1.CodeInvalidConfig && e.Code != pluginv1.CodeInternal {
		return ""
	}
	return fmt.Sprintf("Plan answers %q, and the document is valid", answer)
}
