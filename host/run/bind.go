package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/catalog"
)

// bound is a document and the plugins that may serve it.
type bound struct {
	doc
	provider string         // fixed by the document, an earlier choice or the defaults; "" leaves the choice to the host
	ranks    [][]*candidate // best first; the candidates of a rank fit equally well
	refusals []string       // reasons of the excluded candidates
	result   result         // settled if the document is not planned
}

// bindAll returns the candidates of every document that applies to this machine. It starts all plugins of the stream
// concurrently, and compares candidates in stream order. An error ends the run.
func (r *runner) bindAll(ctx context.Context, s stream) ([]bound, error) {
	choices := map[string]string{}
	if r.deps.State != nil {
		var err error
		if choices, err = r.deps.State.Choices(); err != nil {
			return nil, stateError("", err)
		}
	}
	out := make([]bound, len(s.docs))
	for i, d := range s.docs {
		b := bound{doc: d}
		b.provider = cmp.Or(d.Provider, choices[d.label()], r.o.ImageChoices[d.label()], r.o.Defaults[d.Kind])
		switch {
		case len(d.wrong) > 0:
			b.result = failed(d.wrong)
		case d.source != nil:
			b.result = d.source.result
		case r.o.Mode == ModeValidate && d.isElsewhere(r.o.Target.OS):
			if b.result = r.contractOnly(d); !b.result.settled {
				b.result = b.result.end(report.NotApplicable, "")
			}
		case d.isReference(): // the decoder refused a part of it
			b.result = failed(d.contractProblems())
		case !d.When.Matches(r.o.Target) && (r.o.Mode != ModeValidate || !r.isInstalled(b)):
			b.result = result{}.end(report.NotApplicable, "")
		}
		out[i] = b
	}
	if err := r.prestart(ctx, out); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].result.settled || out[i].source != nil {
			continue
		}
		var err error
		if out[i], err = r.bind(ctx, out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// prestart starts concurrently every plugin that a document may need. bind reports the errors, in stream order.
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
		installed, _ := r.installed(b)
		for _, p := range installed {
			if !seen[p.Binary] {
				seen[p.Binary] = true
				wait.Go(func() { _, _ = r.deps.Plugins.Start(ctx, p) })
			}
		}
	}
	wait.Wait()
	return r.checkpoint(ctx)
}

// installed returns the installed plugins that may serve a document, at least one.
func (r *runner) installed(b bound) ([]catalog.Plugin, error) {
	if b.provider == "" {
		return r.deps.Plugins.ByType(b.Kind)
	}
	p, err := r.deps.Plugins.Find(naming.Binary(b.Kind, b.provider))
	if err != nil {
		return nil, err
	}
	return []catalog.Plugin{p}, nil
}

// providers returns the names of the installed providers of a kind.
func (r *runner) providers(kind string) []string {
	installed, _ := r.deps.Plugins.ByType(kind)
	var names []string
	for _, p := range installed {
		names = append(names, strings.TrimPrefix(p.Binary, naming.Prefix(kind)))
	}
	return names
}

// isInstalled reports whether a plugin for the document is installed: then validate checks a document of another machine too.
func (r *runner) isInstalled(b bound) bool {
	_, err := r.installed(b)
	return err == nil
}

// bind adds the candidates of one document. With a fixed provider, every refusal is an error of the document.
func (r *runner) bind(ctx context.Context, b bound) (bound, error) {
	installed, err := r.installed(b)
	if err != nil {
		missing := b.notFound(naming.Prefix(b.Kind)+cmp.Or(b.provider, "*"), r.providers(b.Kind), err)
		if r.o.Mode == ModeValidate { // what the contract's own schema shows is reported without a plugin
			missing = slices.Concat(b.contractProblems(), missing)
		}
		b.result = failed(missing)
		return b, nil
	}
	var fitting []*candidate
	for _, p := range installed {
		c, wrong, err := r.start(ctx, b.doc, p)
		switch {
		case err != nil:
			return b, err
		case len(wrong) > 0 && b.provider == "" && wrong[0].err.Code == pluginv1.CodeUnsupported.String():
			b.refusals = append(b.refusals, wrong[0].err.Message)
		case len(wrong) > 0: // a choice among the others would hide it
			b.result = failed(wrong)
			return b, nil
		case r.fits(b, c):
			fitting = append(fitting, c)
			r.log.Debug("provider fits", "document", b.label(), "provider", c.provider, "fitness", c.plugin.Description.Fitness.String())
		case b.provider == "":
			b.refusals = append(b.refusals, c.provider+": "+cmp.Or(c.plugin.Description.FitnessReason, "does not serve this machine"))
		default:
			b.result = result{by: c}.fail(b.unfit(c))
		}
	}
	b.ranks = ranked(fitting, r.o.Target)
	return b, nil
}

// fits reports whether a candidate serves this machine. Validation asks every candidate, because the document may be for
// another machine.
func (r *runner) fits(b bound, c *candidate) bool {
	fitness := c.plugin.Description.Fitness
	return r.o.Mode == ModeValidate || fitness > pluginv1.FitnessUnsupported ||
		b.provider != "" && fitness == pluginv1.FitnessUnspecified
}

// unfit returns the problem of a fixed provider that does not serve this machine.
func (b bound) unfit(c *candidate) problems {
	field := ""
	if b.Provider != "" {
		field = "spec.provider"
	}
	return b.problem(field, report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("the provider %s does not serve this machine: %s", c.provider,
			cmp.Or(c.plugin.Description.FitnessReason, "it gives no reason")),
		Hint: "name another provider, or none to let machineadm choose",
	})
}

// start starts a plugin and checks that it serves the document. An error ends the run.
func (r *runner) start(ctx context.Context, d doc, p catalog.Plugin) (*candidate, problems, error) {
	started, err := r.deps.Plugins.Start(ctx, p)
	if err != nil {
		if expired(err) && ctx.Err() != nil {
			return nil, nil, r.contextEnded(ctx.Err())
		}
		return nil, d.fromLaunch(p.Binary, err), nil
	}
	kind, ok := started.Description.Serves(d.APIVersion, d.Kind)
	if !ok {
		return nil, d.unserved(p.Binary, started.Description), nil
	}
	return &candidate{
		plugin: started, binary: p.Binary, kind: kind, provider: strings.TrimPrefix(p.Binary, naming.Prefix(d.Kind)),
	}, nil, nil
}
