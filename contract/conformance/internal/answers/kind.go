package answers

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1/cases"
)

// KindMeans plans the documents that the contract has for the kind, on the tree of this case, in which the plugin can apply its own.
func KindMeans(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	of := f.Runner.Case.Header
	shared, err := sharedCases(of)
	if err != nil {
		return rig.Result{}, err
	}
	if len(shared) == 0 || f.Runner.Case.Refused() {
		return rig.Skipped("the contract has no documents of the kind, or the document is refused"), nil
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	var wrong []string
	for _, c := range shared {
		doc, err := c.Document(f.Runner.Canary, nil)
		if err != nil {
			return rig.Result{}, err
		}
		plan, err := p.CallPlan(ctx, rig.WithDocument(f.Planning(), doc))
		if errors.As(err, new(*process.CrashError)) {
			return rig.Result{}, err
		}
		if err != nil && testcase.TracesOf(f.Runner.Canary).In([]byte(process.Explained(err))) {
			return rig.Failed(rig.Finding{
				Clause: "G-23", Expected: "no answer repeats a secret of the document", Got: c.Name + ": the error repeats the value of a secret field",
				Cause: "a message that quotes what it refuses",
			}), nil
		}
		if said := deviation(c, plan, err, f.Runner.ClaimKey); said != "" {
			wrong = append(wrong, c.Name+": "+said)
		}
	}
	if len(wrong) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "F-20", Expected: fmt.Sprintf("the answers of contract/v1alpha1/cases/%s", of.Kind),
			Got:   fmt.Sprintf("%d of %d documents have another answer:\n%s", len(wrong), len(shared), strings.Join(wrong, "\n")),
			Cause: "a rule of the kind that its schema cannot state, or a claim with another id or value than the kind's other providers have",
		}), nil
	}
	return rig.Passed(), nil
}

// sharedCases are the cases that the contract has for a kind.
func sharedCases(of testcase.Header) ([]*testcase.Case, error) {
	files, err := cases.For(of.APIVersion, of.Kind)
	if err != nil {
		return nil, err
	}
	var all []*testcase.Case
	for _, file := range files {
		c := &testcase.Case{Name: file.Name, Dir: "contract/v1alpha1/cases/" + of.Kind + "/" + file.Name, Config: file.Config}
		if len(file.Expect) > 0 {
			if err := c.ReadExpectation(c.Dir+"/expect.yaml", file.Expect); err != nil {
				return nil, err
			}
		}
		if _, err := c.Document(testcase.NewCanary(), nil); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// deviation returns how an answer of Plan differs from a case of the contract, or "". What the machine or the provider cannot do is no
// deviation: the case says what the document means.
func deviation(c *testcase.Case, plan pluginv1.Plan, answer error, key []byte) string {
	if c.Refused() {
		if e := process.ContractError(answer); e != nil && e.Code == pluginv1.CodeUnsupported && len(e.Violations) == 0 {
			return ""
		}
		return checkErrors(c, "Plan", answer).Got
	}
	if answer == nil {
		return missingClaims(c, plan, key)
	}
	if e := process.ContractError(answer); e != nil && e.Code != pluginv1.CodeInvalidConfig && e.Code != pluginv1.CodeInternal {
		return ""
	}
	return fmt.Sprintf("Plan answers %q, and the document is valid", answer)
}
