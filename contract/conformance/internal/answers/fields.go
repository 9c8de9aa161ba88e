package answers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// fieldSchema is what the kit reads of a JSON schema.
type fieldSchema struct {
	Type       string                 `json:"type"`
	Enum       []any                  `json:"enum"`
	Minimum    *json.Number           `json:"minimum"`
	Maximum    *json.Number           `json:"maximum"`
	Pattern    string                 `json:"pattern"`
	Properties map[string]fieldSchema `json:"properties"`
	Required   []string               `json:"required"`
	Items      *fieldSchema           `json:"items"`
}

// Fields sets one field of the schema after the other, in the document of the case and in what the field is a part of. What a
// document of the phase PROVISIONING does can show on a live machine alone.
func Fields(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	h := f.Runner.Case.Header
	text := schema.For(h.APIVersion, h.Kind)
	if text == nil || f.Runner.Case.Refused() {
		return rig.Skipped("the schema of the kind is not one of machineadm, or the document is refused"), nil
	}
	var whole fieldSchema
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&whole); err != nil {
		return rig.Result{}, fmt.Errorf("read the schema of %s: %w", h.Kind, err)
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	d, err := p.CallDescribe(ctx, f.Planning(), false)
	if err != nil || !slices.ContainsFunc(d.Kinds, func(k pluginv1.Kind) bool {
		return k.APIVersion == h.APIVersion && k.Kind == h.Kind && k.Phase == pluginv1.PhasePreparation
	}) {
		return rig.Skipped("documents of the kind do not belong to the phase PREPARATION"), nil //nolint:nilerr // describe reports it
	}
	root, err := testcase.Parse(f.Runner.Document)
	if err != nil {
		return rig.Result{}, err
	}
	t := fieldRun{ctx: ctx, f: f, plugin: p, root: root}
	spec, ok := root["spec"].(map[string]any)
	if !ok {
		return rig.Skipped("the document has no spec"), nil
	}
	if err := t.mapping(whole.Properties["spec"], spec, "spec"); err != nil {
		return rig.Result{}, err
	}
	if len(t.ignored) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "G-4", Expected: "a field that the plugin cannot implement is Unsupported, with its path",
			Got:   fmt.Sprintf("Plan answers the same whatever the values of the fields %q are", t.ignored),
			Cause: "the field is decoded and not used",
		}), nil
	}
	return rig.Passed(), nil
}

// fieldRun sets fields of a document and collects those without effect.
type fieldRun struct {
	ctx     context.Context //nolint:containedctx // of one check
	f       *rig.Fixture
	plugin  *process.Plugin
	root    map[string]any
	ignored []string
}

// untried reports whether a field is left out: what the provider alone reads has no schema, and mixedLeapSeconds changes no plan, it
// accepts documents of which the check kind has one.
func untried(p document.Path) bool {
	return slices.Contains([]document.Path{"spec.provider", "spec.providerConfig", "spec.mixedLeapSeconds"}, p)
}

// mapping tries the fields of a mapping of the document.
func (t *fieldRun) mapping(s fieldSchema, at map[string]any, p document.Path) error {
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if untried(p.Field(name)) {
			continue
		}
		had, has := at[name]
		err := t.field(s.Properties[name], at, name, p.Field(name))
		delete(at, name)
		if has {
			at[name] = had
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// field tries a field, and those below it.
func (t *fieldRun) field(s fieldSchema, at map[string]any, name string, p document.Path) error {
	switch {
	case s.Type == "object" && len(s.Properties) > 0:
		below, ok := at[name].(map[string]any)
		if !ok {
			below, _ = s.example().(map[string]any)
			at[name] = below
		}
		return t.mapping(s, below, p)
	case s.Type == "array" && s.Items != nil && len(s.Items.Properties) > 0:
		all, ok := at[name].([]any)
		if !ok || len(all) == 0 {
			all = []any{s.Items.example()}
			at[name] = all
		}
		first, ok := all[0].(map[string]any)
		if !ok {
			return nil
		}
		return t.mapping(*s.Items, first, p.Index(0))
	}
	return t.leaf(s.values(), at, name, p)
}

// leaf plans with the field as it is and with each value. A field is ignored if Plan accepts values of it and answers the same
// with each; one that has the value that it has by default says nothing, and so does one that does not fit the others.
func (t *fieldRun) leaf(values []any, at map[string]any, name string, p document.Path) error {
	base, refused, err := t.planned()
	if err != nil || refused != "" {
		return err
	}
	accepted := 0
	for _, value := range values {
		if reflect.DeepEqual(at[name], value) {
			continue
		}
		at[name] = value
		got, refused, err := t.planned()
		if err != nil {
			return err
		}
		_, either := value.(bool)
		switch {
		case refused == pluginv1.CodeInvalidConfig.String() && !either:
		case refused != "" || got != base:
			return nil
		default:
			accepted++
		}
	}
	if accepted > 0 {
		t.ignored = append(t.ignored, string(p))
	}
	return nil
}

// planned returns the answer of Plan as a text, or the code with which it refuses the document.
func (t *fieldRun) planned() (text, refused string, err error) {
	doc, err := json.Marshal(t.root)
	if err != nil {
		return "", "", err
	}
	plan, err := t.plugin.CallPlan(t.ctx, rig.WithDocument(t.f.Planning(), doc))
	if failure := process.ContractError(err); failure != nil {
		return "", failure.Code.String(), nil //nolint:nilerr // a refusal is an answer
	}
	return texts(plan), "", err
}

// texts that a field may have; those that do not match its pattern are not tried.
func candidates() []any {
	return []any{"conformance", "/conformance", "10s", "1", "0640", "conformance.example.com", "192.0.2.1", "https://conformance.example.com"}
}

// values returns some values that the schema permits.
func (s fieldSchema) values() []any {
	switch {
	case len(s.Enum) > 0:
		return slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return v == "" })
	case s.Type == "boolean":
		return []any{true, false}
	case s.Type == "integer" || s.Type == "number":
		out := []any{json.Number("1"), json.Number("7")}
		for _, bound := range []*json.Number{s.Minimum, s.Maximum} {
			if bound != nil {
				out = append(out, *bound)
			}
		}
		return out
	case s.Type == "array" && s.Items != nil:
		var out []any
		for _, v := range s.Items.values() {
			out = append(out, []any{v})
		}
		return out
	case s.Type == "object":
		return []any{map[string]any{"conformance": "1"}}
	case s.Type == "string":
		form, err := regexp.Compile(s.Pattern)
		return slices.DeleteFunc(candidates(), func(v any) bool { text, _ := v.(string); return err != nil || !form.MatchString(text) })
	}
	return nil
}

// example returns a value with what is required.
func (s fieldSchema) example() any {
	if s.Type == "object" {
		out := map[string]any{}
		for _, name := range s.Required {
			out[name] = s.Properties[name].example()
		}
		return out
	}
	if s.Type == "array" && s.Items != nil {
		return []any{s.Items.example()}
	}
	for _, value := range s.values() {
		return value
	}
	return nil
}
