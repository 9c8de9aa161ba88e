package run

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/catalog"
	"github.com/machineadm/machineadm/host/envelope"
	"github.com/machineadm/machineadm/host/launch"
)

const passphrase = "fourteen bytes and more"

// fakeSource is a source and a key provider.
type fakeSource struct {
	pluginv1.Source // whose other calls are not made

	world    *world
	objects  map[string]string                           // by URI
	answer   func(uri string, calls int) error           // before the object is sent; nil: no error
	onFetch  func(ctx context.Context, uri string) error // before answer
	calls    map[string]int
	onReport error
	// onPassphrase is called before the passphrase is returned.
	onPassphrase func()
	requests     []pluginv1.FetchRequest
}

// serve installs a source and key provider with these objects.
func (w *world) serve(provider string, objects map[string]string) *fakeSource {
	s := &fakeSource{world: w, objects: objects, calls: map[string]int{}}
	w.sources[provider] = s
	return s
}

func (s *fakeSource) start(p catalog.Plugin) *launch.Plugin {
	kind := func(name string) pluginv1.Kind { return pluginv1.Kind{APIVersion: v1alpha1.APIVersion, Kind: name} }
	return &launch.Plugin{
		Source: s, Keys: s, Path: p.Path, SHA256: strings.Repeat("00", 32), Kill: func() {}, Stderr: func() string { return "" },
		Description: pluginv1.Description{
			Name: "web", Version: "1", Fitness: pluginv1.FitnessInstalled, Capabilities: []string{pluginv1.CapabilityReport},
			Kinds: []pluginv1.Kind{kind(v1alpha1.KindRemoteConfig), kind(v1alpha1.KindEncryptedConfig), kind(v1alpha1.KindReportTarget)},
		},
	}
}

func (s *fakeSource) Describe(context.Context, pluginv1.DescribeRequest) (pluginv1.Description, error) {
	return pluginv1.Description{}, nil
}

func (s *fakeSource) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	var d v1alpha1.RemoteConfig
	document.Unmarshal(r.Document, &d)
	s.requests = append(s.requests, r)
	if r.ValidateOnly {
		s.world.note("check %s", d.Spec.URI)
		return nil
	}
	s.calls[d.Spec.URI]++
	s.world.note("fetch %s", d.Spec.URI)
	if s.onFetch != nil {
		if err := s.onFetch(ctx, d.Spec.URI); err != nil {
			return err
		}
	}
	if s.answer != nil {
		if err := s.answer(d.Spec.URI, s.calls[d.Spec.URI]); err != nil {
			return err
		}
	}
	object, ok := s.objects[d.Spec.URI]
	if !ok {
		return answered("404")
	}
	if err := send(pluginv1.Chunk{Begin: true, Revision: "1"}); err != nil {
		return err
	}
	return send(pluginv1.Chunk{Data: []byte(object)})
}

// answered is the error of a source that has no object for the machine.
func answered(status string) error {
	return &pluginv1.Error{
		Code: pluginv1.CodePrecondition, Final: true, Message: "answered " + status, Facts: map[string]string{pluginv1.FactStatus: status},
	}
}

func unreachable() error {
	return &pluginv1.Error{Code: pluginv1.CodeRetry, Message: "no route to host"}
}

func (s *fakeSource) Report(_ context.Context, r pluginv1.ReportRequest) error {
	s.world.note("report %s, validate only %v", docName(pluginv1.Request{Document: r.Document}), r.ValidateOnly)
	return s.onReport
}

func (s *fakeSource) Passphrase(_ context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	if bytes.Contains(r.Document, []byte("ciphertext")) {
		return nil, fmt.Errorf("the request has the ciphertext")
	}
	s.world.note("passphrase %s", docName(pluginv1.Request{Document: r.Document}))
	if r.ValidateOnly {
		return nil, nil
	}
	if s.onPassphrase != nil {
		s.onPassphrase()
	}
	return []byte(passphrase), nil
}

func (s *fakeSource) NewPassphrase(context.Context, pluginv1.NewPassphraseRequest) (pluginv1.NewPassphrase, error) {
	return pluginv1.NewPassphrase{}, nil
}

// fakeResolved is a type of its own because world has methods of the same names.
type fakeResolved struct{ *world }

func (w fakeResolved) Load(key string) ([]byte, error) { return w.resolved[key], nil }

func (w fakeResolved) Keep(key string, data []byte) error {
	if w.keptErr == nil {
		w.resolved[key] = data
	}
	return w.keptErr
}

func (w fakeResolved) Only(keys []string) error {
	maps.DeleteFunc(w.resolved, func(key string, _ []byte) bool { return !slices.Contains(keys, key) })
	return nil
}

func (w fakeResolved) Forget() error {
	clear(w.resolved)
	return nil
}

// remote is a RemoteConfig document; more are further fields of its spec.
func remote(name, uri string, more ...string) string {
	return reference(v1alpha1.KindRemoteConfig, name, "{"+strings.Join(append([]string{"provider: web, uri: " + uri}, more...), ", ")+"}")
}

func reference(kind, name, spec string) string {
	return fmt.Sprintf("---\napiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec: %s\n", v1alpha1.APIVersion, kind, name, spec)
}

// thing is a document of the kind Thing.
func thing(name string) string {
	return fmt.Sprintf("---\napiVersion: example.com/v1\nkind: Thing\nmetadata: {name: %s}\nspec: {provider: x}\n", name)
}

// encrypted is an EncryptedConfig document with this stream.
func encrypted(t *testing.T, name, plain string) string {
	t.Helper()
	d, err := envelope.Seal(name, "web", "kms://key", nil, []byte(passphrase), []byte(plain))
	require.NoError(t, err)
	text, err := json.Marshal(d)
	require.NoError(t, err)
	return "---\n" + string(text) + "\n"
}
