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
	"github.com/machineadm/machineadm/host/run/values"
)

// bound is a document and the plugins that may serve it.
type bound struct {
	values.Doc
	provider string                // fixed by the document, an earlier choice or the defaults; "" leaves the choice to the host
	ranks    [][]*values.Candidate // best first; the candidates of a rank fit equally well
	refusals []string              // reasons of the excluded candidates
	result   values.Result         // settled if the document is not planned
}

// bindAll returns the candidates of every document that applies to this machine. It starts all plugins of the stream
// concurrently, and compares candidates in stream order. An error ends the run.
func (r *runner) bindAll(ctx context.Context, s values.Stream) ([]bound, error) {
	choices := map[string]string{}
	if r.deps.State != nil {
		var err error
		if choices, err = r.deps.State.Choices(); err != nil {
			return nil, values.StateError("", err)
		}
	}
	out := make([]bound, len(s.Docs))
	for i, d := range s.Docs {
		b := bound{Doc: d}
		b.provider = cmp.Or(d.Provider, choices[d.Label()], r.o.ImageChoices[d.Label()], r.o.Defaults[d.Kind])
		switch {
		case len(d.Wrong) > 0:
			b.result = values.Failed(d.Wrong)
		case d.Source != nil:
			b.result = d.Source.Result
		case r.o.Mode == ModeValidate && d.IsElsewhere(r.o.Target.OS):
			if b.result = r.contractOnly(d); !b.result.Settled {
				b.result = b.result.End(report.NotApplicable, "")
			}
		case d.IsReference(): // the decoder refused a part of it
			b.result = values.Failed(d.ContractProblems())
		case !d.When.Matches(r.o.Target) && (r.o.Mode != ModeValidate || !r.isInstalled(b)):
			b.result = values.Result{}.End(report.NotApplicable, "")
		}
		out[i] = b
	}
	if err := r.prestart(ctx, out); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].result.Settled || out[i].Source != nil {
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
		if b.result.Settled {
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
		missing := b.NotFound(naming.Prefix(b.Kind)+cmp.Or(b.provider, "*"), r.providers(b.Kind), err)
		if r.o.Mode == ModeValidate { // what the contract's own schema shows is reported without a plugin
			missing = slices.Concat(b.ContractProblems(), missing)
		}
		b.result = values.Failed(missing)
		return b, nil
	}
	var fitting []*values.Candidate
	for _, p := range installed {
		c, wrong, err := r.start(ctx, b.Doc, p)
		switch {
		case err != nil:
			return b, err
		case len(wrong) > 0 && b.provider == "" && wrong[0].Err.Code == pluginv1.CodeUnsupported.String():
			b.refusals = append(b.refusals, wrong[0].Err.Message)
		case len(wrong) > 0: // a choice among the others would hide it
			b.result = values.Failed(wrong)
			return b, nil
		case r.fits(b, c):
			fitting = append(fitting, c)
			r.log.Debug("provider fits", "document", b.Label(), "provider", c.Provider, "fitness", c.Plugin.Description.Fitness.String())
		case b.provider == "":
			b.refusals = append(b.refusals, c.Provider+": "+cmp.Or(c.Plugin.Description.FitnessReason, "does not serve this machine"))
		default:
			b.result = values.Result{By: c}.Fail(b.unfit(c))
		}
	}
	b.ranks = values.Ranked(fitting, r.o.Target)
	return b, nil
}

// fits reports whether a candidate serves this machine. Validation asks every candidate, because the document may be for
// another machine.
func (r *runner) fits(b bound, c *values.Candidate) bool {
	fitness := c.Plugin.Description.Fitness
	return r.o.Mode == ModeValidate || fitness > pluginv1.FitnessUnsupported ||
		b.provider != "" && fitness == pluginv1.FitnessUnspecified
}

// unfit returns the problem of a fixed provider that does not serve this machine.
func (b bound) unfit(c *values.Candidate) values.Problems {
	field := ""
	if b.Provider != "" {
		field = "spec.provider"
	}
	return b.Problem(field, report.Error{
		Code: pluginv1.CodeUnsupported.String(),
		Message: fmt.Sprintf("the provider %s does not serve this machine: %s", c.Provider,
			cmp.Or(c.Plugin.Description.FitnessReason, "it gives no reason")),
		Hint: "name another provider, or none to let machineadm choose",
	})
}

// start starts a plugin and checks that it serves the document. An error ends the run.
func (r *runner) start(ctx context.Context, d values.Doc, p catalog.Plugin) (*values.Candidate, values.Problems, error) {
	started, err := r.deps.Plugins.Start(ctx, p)
	if err != nil {
		if values.Expired(err) && ctx.Err() != nil {
			return nil, nil, r.contextEnded(ctx.Err())
		}
		return nil, d.FromLaunch(p.Binary, err), nil
	}
	kind, ok := started.Description.Serves(d.APIVersion, d.Kind)
	if !ok {
		return nil, d.Unserved(p.Binary, started.Description), nil
	}
	return &values.Candidate{
		Plugin: started, Binary: p.Binary, Kind: kind, Provider: strings.TrimPrefix(p.Binary, naming.Prefix(d.Kind)),
	}, nil, nil
}
