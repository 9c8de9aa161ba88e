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
)

// bindAll finds a plugin for every document that applies to this machine. All that the stream needs are started at
// once; the choice itself is made in stream order. Documents without a plugin go to bad.
func (r *run) bindAll(ctx context.Context, bad *refusal) error {
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
	for _, it := range r.active() {
		// Validating, a document for other machines is read too, if somebody here can.
		if !it.doc.When.Matches(r.o.Target) && (r.o.Mode != ModeValidate || len(r.wanted(it)) == 0) {
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
			if err := r.collect(it, err, bad); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect settles a document that cannot be planned. Where that is no reason to leave the others unread, it goes to
// bad; else collect returns the end of the run.
func (r *run) collect(it *item, err error, bad *refusal) error {
	var invalid *refusal
	if errors.As(err, &invalid) {
		bad.errors = append(bad.errors, invalid.errors...)
		first := invalid.errors[0]
		it.out.Outcome, it.out.Error = report.Failed, &first
		return nil
	}
	f := r.fail(it, err)
	if f.exit != report.ExitPrecondition && f.exit != report.ExitUntrusted {
		return f
	}
	if bad.other == nil {
		bad.other = f
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
		return it.launchFailure(r.o.File, it.binary, err)
	}
	return r.attach(ctx, it, p)
}

// attach starts a plugin for a document and checks that it serves it.
func (r *run) attach(ctx context.Context, it *item, p catalog.Plugin) error {
	it.detach()
	it.binary = p.Binary
	started, err := r.with.Plugins.Start(ctx, p)
	if err != nil {
		if expired(err) && ctx.Err() != nil {
			return r.overdue(ctx.Err())
		}
		return it.launchFailure(r.o.File, p.Binary, err)
	}
	kind, ok := started.Description.Serves(it.doc.APIVersion, it.doc.Kind)
	if !ok {
		return r.unserved(it, p, started.Description)
	}
	it.plugin, it.kind = started, kind
	it.out.Provider = it.providerOf(p)
	it.out.Plugin = &report.Plugin{Path: p.Path, Version: started.Description.Version, SHA256: started.SHA256}
	return nil
}

// detach forgets a plugin that was only tried.
func (it *item) detach() {
	it.plugin, it.out.Plugin, it.out.Provider = nil, nil, it.doc.Provider
}

// providerOf is the provider that a binary's name tells: by that name it is found again, whatever it calls itself.
func (it *item) providerOf(p catalog.Plugin) string {
	return strings.TrimPrefix(p.Binary, naming.Prefix(it.doc.Kind))
}

// unserved: an unknown version of a kind of ours is an error of the configuration; of any other kind, the plugin and
// the document do not fit.
func (r *run) unserved(it *item, p catalog.Plugin, d pluginv1.Description) error {
	var served []string
	for _, k := range d.Kinds {
		served = append(served, k.Kind+" of "+k.APIVersion)
	}
	e := it.located(r.o.File, report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("plugin %s does not serve %s of %s; it serves %s", p.Binary, it.doc.Kind, it.doc.APIVersion,
			firstOf(strings.Join(served, ", "), "nothing")),
		Hint: "install a plugin that serves this version, or write the document for one that is served",
	}, "apiVersion")
	if ours(it.doc) && !knownVersion(it.doc.APIVersion) {
		e.Code, e.Document = pluginv1.CodeInvalidConfig.String(), label(it.doc.Kind, it.doc.Name)
		return &refusal{errors: []report.Error{e}}
	}
	return &failure{exit: report.ExitPrecondition, err: e}
}

// candidates are the installed providers of a kind that serve the document here, best first. Each group of equal
// fitness is one element: a group of two is a tie.
func (r *run) candidates(ctx context.Context, it *item) ([][]catalog.Plugin, []string, error) {
	installed, err := r.with.Plugins.ByType(it.doc.Kind)
	if err != nil {
		return nil, nil, it.launchFailure(r.o.File, naming.Prefix(it.doc.Kind)+"*", err)
	}
	if len(installed) == 0 {
		return nil, nil, &failure{exit: report.ExitPrecondition, err: it.located(r.o.File, report.Error{
			Code:    report.CodeNoPlugin,
			Message: fmt.Sprintf("no plugin for %s is installed", it.doc.Kind),
			Hint:    fmt.Sprintf("install one as %sPROVIDER, or see machineadm plugins list", naming.Prefix(it.doc.Kind)),
		}, "")}
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
		// Validating asks them all: a document is not wrong because it is meant for another machine.
		if d.Fitness <= pluginv1.FitnessUnsupported && r.o.Mode != ModeValidate {
			refusals = append(refusals, it.providerOf(p)+": "+firstOf(d.FitnessReason, "does not serve this machine"))
			continue
		}
		byFitness[d.Fitness] = append(byFitness[d.Fitness], p)
	}
	it.detach()
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
