package conformance

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// unknownField adds a field to the spec, to providerConfig, and to each mapping of the document below them.
func unknownField(ctx context.Context, f *fixture) (result, error) {
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if f.runner.c.refusedWith(code) {
			return skipped("the document is refused with %s already", code), nil
		}
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	for _, parents := range [][]string{{"spec"}, {"spec", "providerConfig"}} {
		doc, err := with(f.runner.document, true, parents, unknownName)
		if err != nil {
			continue // providerConfig of this document is no mapping
		}
		path := document.Path(strings.Join(append(slices.Clone(parents), unknownName), "."))
		allowed := []string{string(path)}
		if len(parents) > 1 { // a kind may have no providerConfig at all
			allowed = append(allowed, "spec.providerConfig")
		}
		_, err = p.plan(ctx, withDocument(f.planning(), doc))
		wrong := finding{
			clause: "G-2", expected: "InvalidConfig with a violation of the field " + strings.Join(allowed, " or "), cause: notDecoded,
		}
		if w := wrongAnswer(err, pluginv1.CodeInvalidConfig); w != "" {
			wrong.got = fmt.Sprintf("with the unknown field %s, %s %s", path, p.role.call(), w)
			return failed(wrong), nil
		}
		if e := contractError(err); !slices.ContainsFunc(e.Violations, func(v document.Violation) bool {
			return slices.Contains(allowed, v.Field)
		}) {
			wrong.got = fmt.Sprintf("with the unknown field %s, no violation of the answer of %s names it: %v", path, p.role.call(), e)
			wrong.cause = "the violation lacks its field path, or the decoder reports another one"
			return failed(wrong), nil
		}
	}
	if got, err := f.nullIsAbsent(ctx, p); err != nil || got.status != Pass {
		return got, err
	}
	return f.unknownBelow(ctx, p)
}

// nullIsAbsent plans with a provider that is null, which every configurator can do without.
func (f *fixture) nullIsAbsent(ctx context.Context, p *plugin) (result, error) {
	doc, err := with(f.runner.document, nil, []string{"spec"}, "provider")
	if err != nil || p.role != configurator {
		return passed(), err
	}
	if _, err := p.plan(ctx, f.planning()); err != nil {
		return passed(), nil //nolint:nilerr // outcome reports it
	}
	if _, err := p.plan(ctx, withDocument(f.planning(), doc)); err != nil {
		return failed(finding{
			clause: "F-6", expected: "a field that is null counts as absent", got: fmt.Sprintf("with a provider that is null, Plan fails: %v", err),
			cause: "a field is tested for its presence, not for a value",
		}), nil
	}
	return passed(), nil
}

const notDecoded = "the document is decoded without refusing unknown fields, or this part of it is not decoded"

// unknownBelow adds a field to one mapping after the other. Any of them can be one with free keys, where another key is
// another desired state: only a plan with the same claims as without the field has ignored it.
func (f *fixture) unknownBelow(ctx context.Context, p *plugin) (result, error) {
	plan, err := p.plan(ctx, f.planning())
	if err != nil || len(plan.Claims) == 0 {
		return passed(), nil //nolint:nilerr // outcome and claims report it
	}
	additions, err := unknownFields(f.runner.document)
	if err != nil {
		return result{}, err
	}
	for _, path := range slices.Sorted(maps.Keys(additions)) {
		got, err := p.plan(ctx, withDocument(f.planning(), additions[path]))
		if err != nil && contractError(err) == nil {
			return result{}, err
		}
		if err == nil && otherClaims(plan, got, nil) == "" {
			return failed(finding{
				clause: "G-2", expected: "InvalidConfig with a violation of the field " + path + ", or other claims where keys are free",
				got: fmt.Sprintf("with the unknown field %s, Plan succeeded with the same claims", path), cause: notDecoded,
			}), nil
		}
	}
	return passed(), nil
}

// unknownFields returns the document once for each mapping below the spec and its providerConfig, with an unknown field in
// that mapping, by the path of the field. Of a list, the first item is tried alone.
func unknownFields(data []byte) (map[string][]byte, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	var visit func(value any, at document.Path) error
	visit = func(value any, at document.Path) (err error) {
		switch value := value.(type) {
		case map[string]any:
			if at != "spec" && at != "spec.providerConfig" {
				value[unknownName] = true
				out[string(at.Field(unknownName))], err = json.Marshal(root)
				delete(value, unknownName)
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
