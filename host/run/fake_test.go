package run

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
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

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/launch"
	"github.com/machineadm/machineadm/host/state"
)

// world is a fake machine with plugins. Its log has one line for each call.
type world struct {
	t           *testing.T
	mu          sync.Mutex
	log         []string
	plugins     map[string]*fakePlugin // by provider
	choices     map[string]string      // by KIND/NAME
	events      []Event
	reports     int
	recorded    report.Report
	failAt      int  // the record call that fails, from 1; 0: none
	fail        bool // every record call from now on
	sentinel    bool
	reboots     int
	counted     string // the stream digest whose reboots are counted
	requests    []state.Request
	keepErr     error       // of Reboots.Keep
	resume      *fakeResume // nil: none
	writes      []string
	details     map[string]string
	sources     map[string]*fakeSource // by provider
	unchoosable error                  // of Choosable
	resolved    map[string][]byte      // what is kept
	keptErr     error                  // of Resolved.Keep
}

func newWorld(t *testing.T) *world {
	return &world{t: t, plugins: map[string]*fakePlugin{}, choices: map[string]string{}, sources: map[string]*fakeSource{}, resolved: map[string][]byte{}}
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

func (w *world) Find(binary string) (catalog.Plugin, error) {
	for provider := range w.sources {
		if binary == naming.Binary(v1alpha1.KindRemoteConfig, provider) || binary == naming.Binary(v1alpha1.KindEncryptedConfig, provider) {
			return catalog.Plugin{Binary: binary, Path: "/plugins/" + binary}, nil
		}
	}
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
	if _, provider, ok := strings.Cut(p.Binary, "-provider-"); ok {
		return w.sources[provider].start(p), nil
	}
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
			Name: cmp.Or(fake.named, provider), Version: "1", Kinds: fake.kinds, Fitness: fake.fitness, FitnessReason: "as the test says",
			Capabilities: fake.able,
		},
	}, nil
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

// fakeReboots and fakeWrites are types of their own because world has methods of the same names.
type (
	fakeReboots struct{ *world }
	fakeWrites  struct{ *world }
)

func (w fakeReboots) Requests() ([]state.Request, error) { return w.requests, nil }

func (w fakeReboots) Keep(all []state.Request) error {
	if w.keepErr != nil {
		return w.keepErr
	}
	w.requests = slices.Clone(all)
	return nil
}

func (w fakeReboots) Count(streamDigest string) (int, error) {
	if w.counted != streamDigest && w.counted != "" {
		w.reboots = 0
	}
	w.counted = streamDigest
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

func decode(t *testing.T, text []byte) *document.Stream {
	t.Helper()
	decoded, err := document.Decode("node.yaml", bytes.NewReader(text))
	require.NoError(t, err)
	return decoded
}

// execute runs the stream in o.Text in this world.
func (w *world) execute(o Options) report.Report {
	w.t.Helper()
	return w.executeIn(w.t.Context(), o)
}

func (w *world) executeIn(ctx context.Context, o Options) report.Report {
	w.t.Helper()
	o.Stream = decode(w.t, o.Text)
	if o.Target.OS == "" {
		o.Target = target.Target{OS: "linux", Distribution: "debian", Architecture: "amd64"}
	}
	if o.Retry == (RetryPolicy{}) {
		o.Retry = RetryPolicy{First: time.Millisecond, Most: 4 * time.Millisecond, Total: time.Minute}
	}
	with := Dependencies{
		Plugins: w, State: w, Sentinel: w, Reboots: fakeReboots{w}, Writes: fakeWrites{w}, Resolved: fakeResolved{w},
		StreamDigest: func(stream []byte) (string, error) { return fmt.Sprintf("%x", sha256.Sum256(stream)), nil },
		Observe: func(e Event) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		},
		Record: func(r report.Report, _ map[string]string) error {
			w.reports++
			w.recorded = r
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
		with.Choosable = func() error { return w.unchoosable }
	}
	if w.resume != nil {
		w.resume.world, with.Resume = w, w.resume
	}
	streamDigest, _ := with.StreamDigest(o.Text)
	before := len(w.events)
	got, details := Execute(ctx, o, with, report.Report{
		StreamDigest: streamDigest, APIVersion: report.APIVersion, Kind: report.Kind, StartedAt: time.Now().UTC(), Outcome: report.RunRunning,
		Documents: []report.Document{},
	})
	wantValid(w.t, got)
	wantWarned(w.t, got, w.events[before:])
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
