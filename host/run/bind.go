package run

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
)

// candidate is a running plugin that serves a document's kind.
type candidate struct {
	plugin   *launch.Plugin
	binary   string
	provider string // from the binary's name: by that name it is found again, whatever it calls itself
	kind     pluginv1.Kind
}

func (c *candidate) stderr() string {
	if c == nil || c.plugin == nil || c.plugin.Stderr == nil {
		return ""
	}
	return c.plugin.Stderr()
}

// bound is a document and the plugins that may serve it.
type bound struct {
	doc
	provider string         // fixed by the document, an earlier choice or the defaults; empty when open
	ranks    [][]*candidate // best first; those of one rank fit equally well
	refusals []string       // why other candidates are out
	result   result         // settled when the document is not planned
}

// bindAll finds the candidates of every document that applies to this machine. All plugins that the stream needs are
// started at once; candidates are compared in stream order. An error ends the run.
func (r *runner) bindAll(ctx context.Context, s stream) ([]bound, error) {
	choices := map[string]string{}
	if r.with.State != nil {
		var err error
		if choices, err = r.with.State.Choices(); err != nil {
			return nil, &ending{stateProblem(err)}
		}
	}
	out := make([]bound, len(s.docs))
	for i, d := range s.docs {
		b := bound{doc: d}
		b.provider = firstOf(d.Provider, choices[d.label()], r.o.ImageChoices[d.label()], r.o.Defaults[d.Kind])
		switch {
		case len(s.refused[i]) > 0:
			b.result = failed(s.refused[i])
		// A validation reads documents for other machines too, where their plugin is installed.
		case !d.When.Matches(r.o.Target) && (r.o.Mode != ModeValidate || len(r.wanted(b)) == 0):
			b.result = settled(report.NotApplicable, "")
		}
		out[i] = b
	}
	if err := r.prestart(ctx, out); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].result.settled {
			continue
		}
		var err error
		if out[i], err = r.bind(ctx, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prestart starts every plugin that some document may need, side by side. What goes wrong is found again, in stream
// order, by bind.
func (r *runner) prestart(ctx context.Context, all []bound) error {
	if err := r.checkpoint(ctx); err != nil {
		return err
	}
	var wait sync.WaitGroup
	seen := map[string]bool{}
	for _, b := range all {
		if b.result.settled {
			continue
		}
		for _, p := range r.wanted(b) {
			if !seen[p.Binary] {
				seen[p.Binary] = true
				wait.Go(func() { _, _ = r.with.Plugins.Start(ctx, p) })
			}
		}
	}
	wait.Wait()
	return r.checkpoint(ctx)
}

// wanted are the installed plugins that may serve a document.
func (r *runner) wanted(b bound) []catalog.Plugin {
	if b.provider == "" {
		installed, err := r.with.Plugins.ByType(b.Kind)
		if err != nil {
			return nil
		}
		return installed
	}
	p, err := r.with.Plugins.Find(naming.Binary(b.Kind, b.provider))
	if err != nil {
		return nil
	}
	return []catalog.Plugin{p}
}

// bind finds the candidates of one document and ranks them.
func (r *runner) bind(ctx context.Context, b bound) (bound, error) {
	if b.provider != "" {
		return r.bindNamed(ctx, b)
	}
	installed, err := r.with.Plugins.ByType(b.Kind)
	if err != nil {
		b.result = failed(b.notFound(naming.Prefix(b.Kind)+"*", err))
		return b, nil
	}
	var all []*candidate
	for _, p := range installed {
		c, wrong, err := r.start(ctx, b.doc, p)
		switch {
		case err != nil:
			return b, err
		case len(wrong) > 0 && wrong[0].err.Code == pluginv1.CodeUnsupported.String():
			b.refusals = append(b.refusals, wrong[0].err.Message)
			continue
		case len(wrong) > 0: // choosing among the others would hide it
			b.result = failed(wrong)
			return b, nil
		}
		// A validation asks all of them: a document is not wrong because it is meant for another machine.
		if d := c.plugin.Description; d.Fitness <= pluginv1.FitnessUnsupported && r.o.Mode != ModeValidate {
			b.refusals = append(b.refusals, c.provider+": "+firstOf(d.FitnessReason, "does not serve this machine"))
			continue
		}
		all = append(all, c)
	}
	b.ranks = ranked(all, r.o.Target)
	for _, c := range all {
		r.log.Debug("provider fits", "document", b.label(), "provider", c.provider, "fitness", c.plugin.Description.Fitness.String())
	}
	return b, nil
}

// notFound is the error for a document whose plugin could not be looked up. A kind of our group that is misspelled gets
// the hint at its right name: installing a plugin would be of no use.
func (d doc) notFound(binary string, err error) problems {
	out := d.fromLaunch(binary, err)
	group, _, _ := strings.Cut(d.APIVersion, "/")
	near := document.SuggestKind(d.Kind)
	if group == v1alpha1.Group && near != "" && near != d.Kind {
		out[0].err.Hint = "did you mean the kind " + near + "?"
	}
	return out
}

// bindNamed starts the one plugin that was named. Its answer that it does not serve this machine is final.
func (r *runner) bindNamed(ctx context.Context, b bound) (bound, error) {
	binary := naming.Binary(b.Kind, b.provider)
	p, err := r.with.Plugins.Find(binary)
	if err != nil {
		b.result = failed(b.notFound(binary, err))
		return b, nil
	}
	c, wrong, err := r.start(ctx, b.doc, p)
	if err != nil {
		return b, err
	}
	if len(wrong) > 0 {
		b.result = failed(wrong)
		return b, nil
	}
	if d := c.plugin.Description; d.Fitness == pluginv1.FitnessUnsupported && r.o.Mode != ModeValidate {
		field := ""
		if b.Provider != "" {
			field = "spec.provider"
		}
		b.result = failed(problems{{err: b.at(field, report.Error{
			Code:    pluginv1.CodeUnsupported.String(),
			Message: fmt.Sprintf("the provider %s does not serve this machine: %s", c.provider, firstOf(d.FitnessReason, "it gives no reason")),
			Hint:    "name another provider, or none to let machineadm choose",
		})}})
		b.result.by = c
	}
	b.ranks = [][]*candidate{{c}}
	return b, nil
}

// start starts a plugin for a document and checks that it serves it. An error ends the run.
func (r *runner) start(ctx context.Context, d doc, p catalog.Plugin) (*candidate, problems, error) {
	started, err := r.with.Plugins.Start(ctx, p)
	if err != nil {
		if expired(err) && ctx.Err() != nil {
			return nil, nil, r.overdue(ctx.Err())
		}
		return nil, d.fromLaunch(p.Binary, err), nil
	}
	kind, ok := started.Description.Serves(d.APIVersion, d.Kind)
	if !ok {
		return nil, d.unserved(p, started.Description), nil
	}
	return &candidate{
		plugin: started, binary: p.Binary, kind: kind, provider: strings.TrimPrefix(p.Binary, naming.Prefix(d.Kind)),
	}, nil, nil
}

// unserved is a document of a version that the plugin does not serve. An unknown version of a kind of ours is an error of
// the configuration; of any other kind, plugin and document do not fit.
func (d doc) unserved(p catalog.Plugin, described pluginv1.Description) problems {
	var served []string
	for _, k := range described.Kinds {
		served = append(served, k.Kind+" of "+k.APIVersion)
	}
	e := report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("plugin %s does not serve %s of %s; it serves %s", p.Binary, d.Kind, d.APIVersion,
			firstOf(strings.Join(served, ", "), "nothing")),
		Hint: "install a plugin that serves this version, or write the document for one that is served",
	}
	if _, version, _ := strings.Cut(d.APIVersion, "/"); ours(d) && version != "v1alpha1" {
		e.Code = pluginv1.CodeInvalidConfig.String()
	}
	return problems{{err: d.at("apiVersion", e)}}
}
