package sdk

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// Phase is the phase in which a kind can be applied.
type Phase = pluginv1.Phase

// The phases of a kind.
const (
	PhasePreparation  = pluginv1.PhasePreparation  // can be baked into an image
	PhaseProvisioning = pluginv1.PhaseProvisioning // needs this machine's identity
)

// PlanFunc compares the desired with the current state and returns the missing changes.
//
// It writes nothing. For an empty root it returns changes or Precondition. An InvalidConfig has all violations at once.
type PlanFunc[C any] func(ctx context.Context, m Machine, want C) (Plan, error)

// Kind is a kind of document with its plan function. See For.
type Kind interface{ definition() definition }

type definition struct {
	apiVersion string
	kind       string
	phase      Phase
	secrets    []string
	schema     []byte
	provides   []string
	plan       func(ctx context.Context, m Machine, doc []byte) (Plan, error)
}

// KindOf is a Kind whose documents are decoded into C.
type KindOf[C any] struct {
	base     definition // all but the plan function
	plan     PlanFunc[C]
	validate func(C) []Violation
	rules    func() *schema.Rules // of the contract
}

// For returns the Kind of this apiVersion and kind. C is the whole document, decoded strictly by its json tags: embed
// v1alpha1.Header and add a Spec. What the contract states of its kinds, such as values, bounds and which sources are the same, is checked before the plan
// function; to report all errors at once it is also called with a document that breaks them, and its plan is then not used.
func For[C any](apiVersion, kind string, phase Phase, plan PlanFunc[C]) KindOf[C] {
	var text []byte
	if apiVersion == v1alpha1.APIVersion {
		text = schema.Of(*new(C))
	}
	return KindOf[C]{plan: plan, rules: sync.OnceValue(func() *schema.Rules { return schema.RulesIn(text) }), base: definition{
		apiVersion: apiVersion, kind: kind, phase: phase, secrets: document.SecretFields(reflect.TypeFor[C]()), schema: text,
	}}
}

// Validate adds a function that returns the errors of a document that do not depend on the machine. It is also called when
// parts of the document do not decode, so that all errors are reported at once; one that follows from another is left out.
func (k KindOf[C]) Validate(validate func(C) []Violation) KindOf[C] {
	k.validate = validate
	return k
}

// JSONSchema adds the JSON schema of the document, which machineadm explain shows. Kinds of the contract already have one.
func (k KindOf[C]) JSONSchema(schema []byte) KindOf[C] {
	k.base.schema = schema
	return k
}

// Provides declares what documents of the kind give to later ones, by beginnings of the ids of its claims, such as "sysctl:", and "file:"
// where they write files that others read. A Precondition of the kind then fails the first planning unless an earlier document can provide
// what it needs (Needs). A kind that does not declare it can provide anything, and anything resolves its Preconditions.
func (k KindOf[C]) Provides(ids ...string) KindOf[C] {
	k.base.provides = append([]string{}, ids...)
	return k
}

func (k KindOf[C]) definition() definition {
	d := k.base
	d.plan = func(ctx context.Context, m Machine, doc []byte) (Plan, error) {
		var want C
		violations, broken := document.Unmarshal(doc, &want), k.rules().Violations(doc)
		if len(violations) == 0 { // else a rule would be about what is not decoded
			broken = besides(broken, document.Refused(&want))
		}
		switch {
		case k.validate != nil:
			violations = document.Join(violations, besides(broken, k.validate(want)))
		case len(violations) == 0 && len(broken) > 0: // the plan function, which writes nothing, has the other violations
			_, err := k.plan(ctx, m, want)
			if violations = broken; err != nil && pluginv1.AsError(err).Code == pluginv1.CodeInvalidConfig {
				violations = besides(broken, pluginv1.AsError(err).Violations)
			}
		default:
			violations = document.Join(violations, broken)
		}
		if len(violations) > 0 {
			return Plan{}, InvalidConfig(violations...)
		}
		return k.plan(ctx, m, want)
	}
	return d
}

// besides adds the violations of a plugin to the violations of rules. Of a field it is the rule that counts: it has the values or the bounds.
func besides(broken, own []Violation) []Violation {
	for _, v := range own {
		if !slices.ContainsFunc(broken, func(b Violation) bool { return b.Field == v.Field }) {
			broken = append(broken, v)
		}
	}
	return broken
}

// ProviderConfig decodes spec.providerConfig strictly, by the json tags of T. It returns what decodes, and all errors with
// field paths of the document. A missing one is the zero T.
func ProviderConfig[T any](raw json.RawMessage) (T, []Violation) {
	const field = "spec.providerConfig"
	var config T
	if len(raw) == 0 {
		return config, nil
	}
	violations := document.Unmarshal(raw, &config)
	for i, v := range violations {
		dot := "."
		if v.Field == "" || strings.HasPrefix(v.Field, "[") {
			dot = ""
		}
		violations[i].Field = field + dot + v.Field
	}
	return config, violations
}
