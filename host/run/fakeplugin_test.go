package run

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

type fakePlugin struct {
	world    *world
	provider string
	kinds    []pluginv1.Kind
	fitness  pluginv1.Fitness
	named    string // what it calls itself, if not provider
	onPlan   func(ctx context.Context, r pluginv1.Request) error
	plan     func(name string, calls int) (pluginv1.Plan, error)
	apply    func(ctx context.Context, name string, send func(pluginv1.Event) error) (pluginv1.Finished, error)
	calls    map[string]int
	onApply  func(r pluginv1.Request)
	able     []string                                        // its capabilities
	answer   func(r pluginv1.Request) (pluginv1.Plan, error) // in place of plan
	silent   bool                                            // writes nothing to stderr
	stateDir string                                          // of the last Apply
	stopped  chan struct{}
	stops    int
	deaf     int // the number of ignored Stops
	killed   chan struct{}
	once     sync.Once
}

// add installs a provider of the kind Thing with one change for every document.
func (w *world) add(provider string) *fakePlugin {
	p := &fakePlugin{
		world: w, provider: provider, fitness: pluginv1.FitnessInstalled, calls: map[string]int{},
		kinds:   []pluginv1.Kind{{APIVersion: "example.com/v1", Kind: "Thing", Phase: pluginv1.PhasePreparation}},
		stopped: make(chan struct{}), killed: make(chan struct{}),
	}
	p.plan = func(string, int) (pluginv1.Plan, error) { return oneChange(), nil }
	p.apply = func(_ context.Context, _ string, send func(pluginv1.Event) error) (pluginv1.Finished, error) {
		return pluginv1.Finished{}, change(send, oneChange().Changes[0])
	}
	w.plugins[provider] = p
	return p
}

func oneChange() pluginv1.Plan {
	return pluginv1.Plan{Changes: []pluginv1.Change{{ID: "a", Summary: "do a"}}}
}

func change(send func(pluginv1.Event) error, c pluginv1.Change) error {
	if err := send(pluginv1.Started{Change: c}); err != nil {
		return err
	}
	return send(pluginv1.Changed{ID: c.ID})
}

func (p *fakePlugin) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{}, nil
}

func docName(r pluginv1.Request) string {
	var d struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(r.Document, &d); err != nil {
		return err.Error()
	}
	return d.Metadata.Name
}

func (p *fakePlugin) Plan(ctx context.Context, r pluginv1.Request) (pluginv1.Plan, error) {
	if p.onPlan != nil {
		if err := p.onPlan(ctx, r); err != nil {
			return pluginv1.Plan{}, err
		}
	}
	name := docName(r)
	p.world.mu.Lock()
	p.calls[name]++
	calls := p.calls[name]
	p.world.mu.Unlock()
	p.world.note("plan %s by %s", name, p.provider)
	if p.answer != nil {
		return p.answer(r)
	}
	return p.plan(name, calls)
}

func (p *fakePlugin) Apply(
	ctx context.Context, r pluginv1.Request, _ int, send func(pluginv1.Event) error,
) (pluginv1.Finished, error) {
	p.world.note("apply %s by %s", docName(r), p.provider)
	p.stateDir = r.StateDir
	if p.onApply != nil {
		p.onApply(r)
	}
	return p.apply(ctx, docName(r), send)
}

func (p *fakePlugin) Stop(context.Context) error {
	p.world.mu.Lock()
	p.stops++
	stops := p.stops
	p.world.mu.Unlock()
	if stops == p.deaf+1 {
		p.world.note("stop %s", p.provider)
		close(p.stopped)
	}
	return nil
}
