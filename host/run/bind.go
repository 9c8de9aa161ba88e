package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
)

// bindAll finds a plugin for every document that applies to this machine. All that the stream needs are started at
// once; the choice itself is made in stream order.
func (r *run) bindAll(ctx context.Context) error {
	if err := r.checkpoint(ctx); err != nil {
		return err
	}
	bindings := map[string]string{}
	if r.with.State != nil {
		var err error
		if bindings, err = r.with.State.Bindings(); err != nil {
			return stateFailure(err)
		}
	}
	for _, it := range r.items {
		if r.o.Mode != ModeValidate && !it.doc.When.Matches(r.o.Target) {
			it.out.Outcome = report.NotApplicable
			continue
		}
		var err error
		if it.json, err = it.doc.JSON(); err != nil {
			return r.fail(it, &failure{exit: report.ExitUsage, err: report.Error{
				Code: pluginv1.CodeInvalidConfig.String(), Message: "the document cannot be encoded as JSON",
			}})
		}
		if it.provider == "" {
			it.provider = firstOf(bindings[it.doc.Kind], r.o.Defaults[it.doc.Kind])
		}
	}
	if err := r.prestart(ctx); err != nil {
		return err
	}
	for _, it := range r.active() {
		if err := r.bind(ctx, it); err != nil {
			return r.fail(it, err)
		}
	}
	return nil
}

// active are the documents whose outcome is still open.
func (r *run) active() []*item {
	var out []*item
	for _, it := range r.items {
		if it.out.Outcome == "" {
			out = append(out, it)
		}
	}
	return out
}

// prestart starts, side by side, every plugin that some document names. What goes wrong is found again, in stream
// order, by bind.
func (r *run) prestart(ctx context.Context) error {
	var wait sync.WaitGroup
	seen := map[string]bool{}
	for _, it := range r.active() {
		for _, p := range r.wanted(it) {
			if seen[p.Binary] {
				continue
			}
			seen[p.Binary] = true
			wait.Go(func() { _, _ = r.with.Plugins.Start(ctx, p) })
		}
	}
	wait.Wait()
	return r.checkpoint(ctx)
}

func (r *run) wanted(it *item) []catalog.Plugin {
	if it.provider != "" {
		p, err := r.with.Plugins.Find(naming.Binary(it.doc.Kind, it.provider))
		if err != nil {
			return nil
		}
		return []catalog.Plugin{p}
	}
	installed, err := r.with.Plugins.ByType(it.doc.Kind)
	if err != nil {
		return nil
	}
	return installed
}

// bind settles which plugin serves a document. A document whose provider is open is settled here only when one
// candidate is left; else planning tries them in order.
func (r *run) bind(ctx context.Context, it *item) error {
	if it.provider == "" {
		return nil // chosen when planned: a candidate may refuse a field
	}
	it.binary = naming.Binary(it.doc.Kind, it.provider)
	p, err := r.with.Plugins.Find(it.binary)
	if err != nil {
		return launchFailure(it.binary, err)
	}
	return r.attach(ctx, it, p)
}

// attach starts a plugin for a document and checks that it serves it.
func (r *run) attach(ctx context.Context, it *item, p catalog.Plugin) error {
	started, err := r.with.Plugins.Start(ctx, p)
	if err != nil {
		if expired(err) && ctx.Err() != nil {
			return r.overdue(ctx.Err())
		}
		return launchFailure(p.Binary, err)
	}
	kind, ok := started.Description.Serves(it.doc.APIVersion, it.doc.Kind)
	if !ok {
		return r.unserved(it, p, started.Description)
	}
	it.plugin, it.kind, it.binary = started, kind, p.Binary
	it.out.Provider = started.Description.Name
	it.out.Plugin = &report.Plugin{Path: p.Path, Version: started.Description.Version, SHA256: started.SHA256}
	return nil
}

// unserved: an unknown version of a kind of ours is an error of the configuration; of any other kind, the plugin and
// the document do not fit.
func (r *run) unserved(it *item, p catalog.Plugin, d pluginv1.Description) error {
	var served []string
	for _, k := range d.Kinds {
		served = append(served, k.Kind+" of "+k.APIVersion)
	}
	f := &failure{exit: report.ExitPrecondition, err: report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("plugin %s does not serve %s of %s; it serves %s", p.Binary, it.doc.Kind, it.doc.APIVersion,
			firstOf(strings.Join(served, ", "), "nothing")),
		Hint: "install a plugin that serves this version, or write the document for one that is served",
	}}
	if ours(it.doc) && !knownVersion(it.doc.APIVersion) {
		f.exit, f.err.Code = report.ExitUsage, pluginv1.CodeInvalidConfig.String()
	}
	f.err = it.located(r.o.File, f.err, "apiVersion")
	return f
}

// candidates are the installed providers of a kind that serve the document here, best first. Each group of equal
// fitness is one element: a group of two is a tie.
func (r *run) candidates(ctx context.Context, it *item) ([][]catalog.Plugin, []string, error) {
	installed, err := r.with.Plugins.ByType(it.doc.Kind)
	if err != nil {
		return nil, nil, launchFailure(it.doc.Kind, err)
	}
	if len(installed) == 0 {
		return nil, nil, &failure{exit: report.ExitPrecondition, err: report.Error{
			Code:    report.CodeNoPlugin,
			Message: fmt.Sprintf("no plugin for %s is installed", it.doc.Kind),
			Hint:    fmt.Sprintf("install one as %s, or see machineadm plugins list", naming.Binary(it.doc.Kind, "PROVIDER")),
		}}
	}
	byFitness := map[pluginv1.Fitness][]catalog.Plugin{}
	var refusals []string
	for _, p := range installed {
		err := r.attach(ctx, it, p)
		var f *failure
		switch {
		case errors.As(err, &f) && f.err.Code == pluginv1.CodeUnsupported.String():
			refusals = append(refusals, f.err.Message)
			continue
		case err != nil:
			return nil, nil, err
		}
		d := it.plugin.Description
		if d.Fitness <= pluginv1.FitnessUnsupported {
			refusals = append(refusals, fmt.Sprintf("%s: %s", d.Name, firstOf(d.FitnessReason, "does not serve this machine")))
			continue
		}
		byFitness[d.Fitness] = append(byFitness[d.Fitness], p)
	}
	it.plugin, it.out.Plugin, it.out.Provider = nil, nil, "" // none is chosen yet
	var ranked [][]catalog.Plugin
	for _, fitness := range slices.Backward(slices.Sorted(maps.Keys(byFitness))) {
		ranked = append(ranked, byFitness[fitness])
	}
	return ranked, refusals, nil
}

func knownVersion(apiVersion string) bool {
	_, version, _ := strings.Cut(apiVersion, "/")
	return version == "v1alpha1"
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// planDocument asks a plugin for its plan, within the deadline for one.
func planDocument(ctx context.Context, p *launch.Plugin, request pluginv1.Request) (pluginv1.Plan, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, PlanTimeout, errPlanOverdue)
	defer cancel()
	plan, err := p.Plan(ctx, request)
	if err != nil && expired(err) && errors.Is(context.Cause(ctx), errPlanOverdue) {
		return plan, errPlanOverdue
	}
	return plan, err
}

var errPlanOverdue = errors.New("the plugin did not plan within " + PlanTimeout.String())
