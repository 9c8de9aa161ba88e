package answers

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// UnknownField adds a field to the spec, to providerConfig, and to each mapping of the document below them.
func UnknownField(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if f.Runner.Case.RefusedWith(code) {
			return rig.Skipped("the document is refused with %s already", code), nil
		}
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	for _, parents := range [][]string{{"spec"}, {"spec", "providerConfig"}} {
		doc, err := testcase.With(f.Runner.Document, true, parents, testcase.UnknownName)
		if err != nil {
			continue // providerConfig of this document is no mapping
		}
		path := document.Path(strings.Join(append(slices.Clone(parents), testcase.UnknownName), "."))
		allowed := []string{string(path)}
		if len(parents) > 1 { // a kind may have no providerConfig at all
			allowed = append(allowed, "spec.providerConfig")
		}
		_, err = p.CallPlan(ctx, rig.WithDocument(f.Planning(), doc))
		wrong := rig.Finding{
			Clause: "G-2", Expected: "InvalidConfig with a violation of the field " + strings.Join(allowed, " or "), Cause: notDecoded,
		}
		if w := process.WrongAnswer(err, pluginv1.CodeInvalidConfig); w != "" {
			wrong.Got = fmt.Sprintf("with the unknown field %s, %s %s", path, p.Role.Call(), w)
			return rig.Failed(wrong), nil
		}
		if e := process.ContractError(err); !slices.ContainsFunc(e.Violations, func(v document.Violation) bool {
			return slices.Contains(allowed, v.Field)
		}) {
			wrong.Got = fmt.Sprintf("with the unknown field %s, no violation of the answer of %s names it: %v", path, p.Role.Call(), e)
			wrong.Cause = "the violation lacks its field path, or the decoder reports another one"
			return rig.Failed(wrong), nil
		}
	}
	if got, err := nullIsAbsent(ctx, f, p); err != nil || got.Status != rig.Pass {
		return got, err
	}
	return unknownBelow(ctx, f, p)
}

// nullIsAbsent plans with a provider that is null, which every configurator can do without.
func nullIsAbsent(ctx context.Context, f *rig.Fixture, p *process.Plugin) (rig.Result, error) {
	doc, err := testcase.With(f.Runner.Document, nil, []string{"spec"}, "provider")
	if err != nil || p.Role != testcase.Configurator {
		return rig.Passed(), err
	}
	if _, err := p.CallPlan(ctx, f.Planning()); err != nil {
		return rig.Passed(), nil //nolint:nilerr // outcome reports it
	}
	if _, err := p.CallPlan(ctx, rig.WithDocument(f.Planning(), doc)); err != nil {
		return rig.Failed(rig.Finding{
			Clause: "F-6", Expected: "a field that is null counts as absent", Got: fmt.Sprintf("with a provider that is null, Plan fails: %v", err),
			Cause: "a field is tested for its presence, not for a value",
		}), nil
	}
	return rig.Passed(), nil
}

const notDecoded = "the document is decoded without refusing unknown fields, or this part of it is not decoded"

// unknownBelow adds a field to one mapping after the other. Any of them can be one with free keys, where another key is
// another desired state: only a plan with the same claims as without the field has ignored it.
func unknownBelow(ctx context.Context, f *rig.Fixture, p *process.Plugin) (rig.Result, error) {
	plan, err := p.CallPlan(ctx, f.Planning())
	if err != nil || len(plan.Claims) == 0 {
		return rig.Passed(), nil //nolint:nilerr // outcome and claims report it
	}
	additions, err := unknownFields(f.Runner.Document)
	if err != nil {
		return rig.Result{}, err
	}
	for _, path := range slices.Sorted(maps.Keys(additions)) {
		got, err := p.CallPlan(ctx, rig.WithDocument(f.Planning(), additions[path]))
		if err != nil && process.ContractError(err) == nil {
			return rig.Result{}, err
		}
		if err == nil && otherClaims(plan, got, nil) == "" {
			return rig.Failed(rig.Finding{
				Clause: "G-2", Expected: "InvalidConfig with a violation of the field " + path + ", or other claims where keys are free",
				Got: fmt.Sprintf("with the unknown field %s, Plan succeeded with the same claims", path), Cause: notDecoded,
			}), nil
		}
	}
	return rig.Passed(), nil
}

// unknownFields returns the document once for each mapping below the spec and its providerConfig, with an unknown field in
// that mapping, by the path of the field. Of a list, the first item is tried alone.
func unknownFields(data []byte) (map[string][]byte, error) {
	root, err := testcase.Parse(data)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	var visit func(value any, at document.Path) error
	visit = func(value any, at document.Path) (err error) {
		switch value := value.(type) {
		case map[string]any:
			if at != "spec" && at != "spec.providerConfig" {
				value[testcase.UnknownName] = true
				out[string(at.Field(testcase.UnknownName))], err = json.Marshal(root)
				delete(value, testcase.UnknownName)
			}
			for key, below := range value {
				if err == nil {
					err = visit(below, at.Field(key))
				}
			}
		case []any:
			if len(value) > 0 {
				return visit(value[0], at.Index(0))
			}
		}
		return err
	}
	return out, visit(root["spec"], "spec")
}
