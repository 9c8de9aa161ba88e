package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/machine"
)

// NewConfigurator returns the plugin as the service of the protocol, for this GOOS. Main serves it; tests call it directly.
func NewConfigurator(p Plugin, goos string) pluginv1.Configurator {
	s := &configurator{plugin: p, goos: goos, stops: map[context.Context]context.CancelCauseFunc{}}
	for _, k := range p.Kinds {
		s.kinds = append(s.kinds, k.definition())
	}
	return s
}

type configurator struct {
	plugin Plugin
	goos   string
	kinds  []definition

	applying sync.Mutex // one Apply at a time in this process
	stopping sync.Mutex
	stops    map[context.Context]context.CancelCauseFunc // of every Apply that has begun, by the context that each cancels
}

// Describe implements pluginv1.Configurator.
func (s *configurator) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	d := pluginv1.Description{
		Name: s.plugin.Name, Version: s.plugin.Version, Distributions: s.plugin.Distributions,
		Fitness: FitnessInstalled, FitnessReason: "serves " + r.Target.OS,
	}
	for _, k := range s.kinds {
		kind := pluginv1.Kind{APIVersion: k.apiVersion, Kind: k.kind, Phase: k.phase, SecretFields: k.secrets}
		if r.JSONSchema {
			kind.JSONSchema = k.schema
		}
		d.Kinds = append(d.Kinds, kind)
	}
	if err := s.supports(r.Target); err != nil {
		d.Fitness, d.FitnessReason = FitnessUnsupported, pluginv1.AsError(err).Message
		return d, nil
	}
	if s.plugin.Fit == nil {
		return d, nil
	}
	m, closeMachine, err := machine.New(r.Root, "", r.Target)
	if err != nil {
		return d, classify(ctx, err)
	}
	defer func() { _ = closeMachine() }() // only read from
	d.Fitness, d.FitnessReason, err = s.plugin.Fit(ctx, m)
	return d, classify(ctx, err)
}

// supports refuses a machine of another operating system, on which success would be wrong.
func (s *configurator) supports(t target.Target) error {
	switch {
	case t.OS != s.goos:
		return Unsupported("", fmt.Sprintf("the plugin was built for %s, the target is %s", s.goos, t.OS), "")
	case !slices.Contains(s.plugin.OS, t.OS):
		return Unsupported("", fmt.Sprintf("provider %s does not serve %s", s.plugin.Name, t.OS), "")
	}
	return nil
}

// Plan implements pluginv1.Configurator.
func (s *configurator) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	var out pluginv1.Plan
	owned := &claims{key: r.ClaimKey}
	err := s.planned(ctx, r, owned, func(_ Machine, plan Plan) error {
		for _, c := range plan.Changes {
			out.Changes = append(out.Changes, wireChange(c))
		}
		out.Warnings, out.Claims = plan.Warnings, owned.all
		return owned.check()
	})
	return out, owned.attach(err)
}

// planned decodes the document, plans, checks the plan and calls use, with the machine open.
func (s *configurator) planned(
	ctx context.Context, r pluginv1.Request, owned *claims, use func(Machine, Plan) error,
) (err error) {
	if err := s.supports(r.Target); err != nil {
		return err
	}
	kind, err := s.kindOf(r.Document)
	if err != nil {
		return err
	}
	m, closeMachine, err := machine.New(r.Root, r.StateDir, r.Target)
	if err != nil {
		return classify(ctx, err)
	}
	defer func() { err = errors.Join(err, closeMachine()) }()
	m.Claims = owned.add
	plan, err := kind.plan(ctx, m, r.Document)
	if err != nil {
		return classify(ctx, err)
	}
	if err := check(plan); err != nil {
		return err
	}
	return use(m, plan)
}

func (s *configurator) kindOf(doc []byte) (definition, error) {
	var header struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := json.Unmarshal(doc, &header); err != nil {
		// never %w: encoding/json may quote the document
		return definition{}, internal("the document that the host sent is not JSON")
	}
	for _, k := range s.kinds {
		if k.apiVersion == header.APIVersion && k.kind == header.Kind {
			return k, nil
		}
	}
	return definition{}, Unsupported("kind",
		fmt.Sprintf("provider %s does not serve %s of %s", s.plugin.Name, header.Kind, header.APIVersion), "")
}

// check refuses a plan that cannot be applied or reported.
func check(plan Plan) error {
	seen := map[string]bool{}
	for _, c := range plan.Changes {
		switch {
		case c.ID == "" || c.Summary == "":
			return internal("a planned change has no ID or no summary")
		case seen[c.ID]:
			return internal("two planned changes have the ID " + c.ID)
		case c.Do == nil:
			return internal("the change " + c.ID + " has no Do")
		}
		seen[c.ID] = true
	}
	return nil
}

func wireChange(c Change) pluginv1.Change {
	return pluginv1.Change{ID: c.ID, Summary: c.Summary, Diff: c.Diff, NeedsLive: c.NeedsLive, Reboot: c.Reboot}
}
