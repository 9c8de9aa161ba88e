package sdk

import (
	"context"
	"errors"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// NewConfigurator returns the plugin as the service of the protocol, for this GOOS. Main serves it; tests call it directly.
func NewConfigurator(p Plugin, goos string) pluginv1.Configurator {
	s := &configurator{plugin: p, about: about{name: p.Name, version: p.Version, os: p.OS, goos: goos}, stops: map[context.Context]context.CancelCauseFunc{}}
	for _, k := range p.Kinds {
		s.kinds = append(s.kinds, k.definition())
	}
	return s
}

func (p Plugin) server(goos string) pluginv1.Describer { return NewConfigurator(p, goos) }

type configurator struct {
	about
	plugin  Plugin
	kinds   []definition
	answers machine.Answers

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
	if s.goos == "linux" { // elsewhere there is no Rehearsal
		d.Capabilities = []string{pluginv1.CapabilityFiles}
	}
	for _, k := range s.kinds {
		kind := pluginv1.Kind{APIVersion: k.apiVersion, Kind: k.kind, Phase: k.phase, SecretFields: k.secrets, Provides: k.provides}
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
		return d, fault.Classify(ctx, err)
	}
	defer func() { _ = closeMachine() }() // only read from
	d.Fitness, d.FitnessReason, err = s.plugin.Fit(ctx, m)
	if err = fault.Classify(ctx, err); pluginv1.AsError(err) != nil && pluginv1.AsError(err).Code == pluginv1.CodeUnsupported {
		d.Fitness, d.FitnessReason, err = FitnessUnsupported, pluginv1.AsError(err).Message, nil
	}
	return d, err
}

// Plan implements pluginv1.Configurator.
func (s *configurator) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	var out pluginv1.Plan
	owned := &claims{key: r.ClaimKey}
	rehearsal := func(m Machine) Machine { return m.Rehearsal(r.Files) }
	err := s.planned(ctx, r, rehearsal, owned, func(m Machine, plan Plan) error {
		if err := rehearse(ctx, m, plan); err != nil {
			return err
		}
		for _, c := range plan.Changes {
			change := wireChange(c)
			change.Listed = r.ListFiles && c.rehearse != nil && !c.NeedsLive
			out.Changes = append(out.Changes, change)
		}
		if r.ListFiles {
			out.Files = m.FS.Rehearsed()
		}
		out.Warnings, out.Claims, out.Needs = plan.Warnings, owned.all, plan.Needs
		return owned.check()
	})
	return out, owned.attach(err)
}

// planned decodes the document, plans, checks the plan and calls use, with the machine open.
func (s *configurator) planned(
	ctx context.Context, r pluginv1.Request, on func(Machine) Machine, owned *claims, use func(Machine, Plan) error,
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
		return fault.Classify(ctx, err)
	}
	defer func() { err = errors.Join(err, closeMachine()) }()
	m = on(m)
	m.Commands = s.answers.Runner(m.Commands)
	m.Claims = owned.add
	plan, err := kind.plan(ctx, m, r.Document)
	if err != nil {
		return warning(fault.Classify(ctx, err), plan.Warnings)
	}
	if err := check(plan); err != nil {
		return err
	}
	return use(m, plan)
}

func (s *configurator) kindOf(doc []byte) (definition, error) {
	h, err := headerOf(doc)
	if err != nil {
		return definition{}, err
	}
	for _, k := range s.kinds {
		if k.apiVersion == h.APIVersion && k.kind == h.Kind {
			return k, nil
		}
	}
	return definition{}, unserved(s.name, h)
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
