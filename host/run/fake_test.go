package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
)

// world is a machine with plugins, written down: what it did stands in its log.
type world struct {
	t        *testing.T
	mu       sync.Mutex
	log      []string
	plugins  map[string]*fakePlugin // by provider
	choices  map[string]string      // by KIND/NAME
	events   []Event
	reports  int
	failAt   int  // the record call that fails, from 1; 0: none
	fail     bool // every record call from now on
	sentinel bool
	reboots  int
	requests []Request
	keepErr  error       // of Reboots.Keep
	resume   *fakeResume // nil: none
	writes   []string
	details  map[string]string
}

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
	silent   bool   // writes nothing to stderr
	stateDir string // of the last Apply
	stopped  chan struct{}
	stops    int
	deaf     int // how many times Stop is not heard
	killed   chan struct{}
	once     sync.Once
}

func newWorld(t *testing.T) *world {
	return &world{t: t, plugins: map[string]*fakePlugin{}, choices: map[string]string{}}
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

func (w *world) lines() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Join(w.log, "\n")
}

// add installs a provider of the kind Thing that has one change for every document and then none.
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

func (w *world) Find(binary string) (catalog.Plugin, error) {
	for provider := range w.plugins {
		if naming.Binary("Thing", provider) == binary || strings.HasSuffix(binary, "-plugin-"+provider) {
			return catalog.Plugin{Binary: binary, Path: "/plugins/" + binary}, nil
		}
	}
	return catalog.Plugin{}, errors.New("not installed")
}

func (w *world) ByType(kind string) ([]catalog.Plugin, error) {
	var out []catalog.Plugin
	for provider := range w.plugins {
		binary := naming.Binary(kind, provider)
		out = append(out, catalog.Plugin{Binary: binary, Path: "/plugins/" + binary})
	}
	if len(out) == 0 {
		return nil, &catalog.NotFoundError{Kind: kind, File: naming.Prefix(kind) + "PROVIDER", Directories: []string{"/plugins"}}
	}
	slices.SortFunc(out, func(a, b catalog.Plugin) int { return strings.Compare(a.Binary, b.Binary) })
	return out, nil
}

func (w *world) Start(_ context.Context, p catalog.Plugin) (*launch.Plugin, error) {
	provider := p.Binary[strings.LastIndex(p.Binary, "-plugin-")+len("-plugin-"):]
	fake, ok := w.plugins[provider]
	if !ok {
		return nil, errors.New("not installed")
	}
	return &launch.Plugin{
		Configurator: fake, Path: p.Path, SHA256: strings.Repeat("00", 32), Stderr: func() string {
			if fake.silent {
				return ""
			}
			return "last words of " + provider
		},
		Kill: func() { fake.once.Do(func() { w.note("kill %s", provider); close(fake.killed) }) },
		Description: pluginv1.Description{
			Name: firstOf(fake.named, provider), Version: "1", Kinds: fake.kinds, Fitness: fake.fitness, FitnessReason: "as the test says",
		},
	}, nil
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

func (w *world) PluginDir(binary, kind, name string) (string, error) {
	return "/state/" + binary + "/" + kind + "-" + name, nil
}

func (w *world) Choices() (map[string]string, error) { return w.choices, nil }

func (w *world) Choose(document, provider string) error {
	w.choices[document] = provider
	return nil
}

func (w *world) Remove() error {
	w.note("remove sentinel")
	w.sentinel = false
	return nil
}

func (w *world) Write() error {
	w.note("write sentinel")
	w.sentinel = true
	return nil
}

// fakeReboots and fakeWrites have methods of the same names as others of world.
type (
	fakeReboots struct{ *world }
	fakeWrites  struct{ *world }
)

func (w fakeReboots) Requests() ([]Request, error) { return w.requests, nil }

func (w fakeReboots) Keep(all []Request) error {
	if w.keepErr != nil {
		return w.keepErr
	}
	w.requests = slices.Clone(all)
	return nil
}

func (w fakeReboots) Count(string) (int, error) {
	w.reboots++
	w.note("count reboot %d", w.reboots)
	return w.reboots, nil
}

func (w fakeReboots) Forget() error {
	w.reboots = 0
	return nil
}

func (w fakeWrites) Record(paths []string) error {
	w.writes = append(w.writes, paths...)
	return nil
}

// execute runs a stream in this world.
func (w *world) execute(o Options) report.Report {
	w.t.Helper()
	return w.executeIn(w.t.Context(), o)
}

func (w *world) executeIn(ctx context.Context, o Options) report.Report {
	w.t.Helper()
	o.File = "node.yaml"
	if o.Target.OS == "" {
		o.Target = target.Target{OS: "linux", Distribution: "debian", Architecture: "amd64"}
	}
	if o.Retry == (RetryPolicy{}) {
		o.Retry = RetryPolicy{First: time.Millisecond, Most: 4 * time.Millisecond, Total: 200 * time.Millisecond}
	}
	with := Dependencies{
		Plugins: w, State: w, Sentinel: w, Reboots: fakeReboots{w}, Writes: fakeWrites{w},
		Observe: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Record: func(r report.Report, _ map[string]string) error {
			w.reports++
			if w.reports <= 5 { // a test of thousands of changes writes as many reports
				wantValid(w.t, r)
			}
			if w.failAt > 0 && w.reports >= w.failAt || w.fail {
				return errors.New("no space left on device")
			}
			return nil
		},
	}
	if o.Root != "" {
		with.Sentinel, with.Reboots = nil, nil
	}
	if w.resume != nil {
		w.resume.world, with.Resume = w, w.resume
	}
	got, details := Execute(ctx, o, with, report.Report{
		APIVersion: report.APIVersion, Kind: report.Kind, Outcome: report.RunRunning, Documents: []report.Document{},
	})
	wantValid(w.t, got)
	w.details = details
	return got
}

// reportSchema is the published schema of a report.
var reportSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	return jsonschema.NewCompiler().Compile("../../contract/report/report.schema.json")
})

// wantValid fails for a report that the published schema refuses.
func wantValid(t *testing.T, r report.Report) {
	t.Helper()
	schema, err := reportSchema()
	require.NoError(t, err)
	data, err := json.Marshal(r)
	require.NoError(t, err)
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	require.NoError(t, err)
	assert.NoError(t, schema.Validate(value))
}

// things writes one Thing for each spec, named a, b, c ...
func things(specs ...string) []byte {
	var b strings.Builder
	for i, spec := range specs {
		fmt.Fprintf(&b, "---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %c}\nspec: %s\n", 'a'+i, spec)
	}
	return []byte(b.String())
}

func outcomes(r report.Report) string {
	var out []string
	for _, d := range r.Documents {
		text := string(d.Outcome)
		if d.Reason != "" {
			text += "/" + d.Reason
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func errorsOf(r report.Report) string {
	var out []string
	for _, e := range r.Errors {
		out = append(out, e.Code+": "+e.Message)
	}
	return strings.Join(out, "\n")
}
