package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// credentials are spec.providerConfig of both kinds.
type credentials struct {
	Token *v1alpha1.Secret `json:"token,omitempty"`
}

// checkPlace refuses a URI that is neither an absolute path nor an address.
func checkPlace(field, uri string, config json.RawMessage) []sdk.Violation {
	_, violations := sdk.ProviderConfig[credentials](config)
	if uri != "" && !filepath.IsAbs(uri) && !strings.HasPrefix(uri, "http://") {
		violations = append(violations, sdk.Violation{Field: field, Message: "is neither an absolute path nor an address"})
	}
	return violations
}

// open opens what is at a place.
func open(ctx context.Context, uri string) (io.ReadCloser, error) {
	missing := sdk.Answered(sdk.Precondition("there is no such object", "put it there"), http.StatusNotFound)
	if filepath.IsAbs(uri) {
		file, err := os.Open(uri)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, missing
		}
		return file, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(missing, answer.Body.Close())
	}
	return answer.Body, nil
}

// brokenSource is a Source with a defect.
type brokenSource struct {
	pluginv1.Source
	defect defect
}

func newSource(d defect) pluginv1.Source {
	return brokenSource{defect: d, Source: sdk.NewSource(sdk.Source{
		Name: d.name, Version: version, OS: []string{runtime.GOOS}, Secrets: []string{"spec.providerConfig.token"},
		Validate: func(l sdk.Location) []sdk.Violation { return checkPlace(l.Field, l.URI, l.ProviderConfig) },
		Fetch: func(ctx context.Context, l sdk.Location) (sdk.Object, error) {
			body, err := open(ctx, l.URI)
			return sdk.Object{Body: body}, err
		},
		Report: func(context.Context, sdk.Location, sdk.RunReport) error { return nil },
		Store: func(_ context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
			if !filepath.IsAbs(l.URI) {
				return sdk.Reference{}, sdk.Precondition("the server keeps nothing", "use a path")
			}
			return sdk.Reference{URI: l.URI}, os.WriteFile(l.URI, o.Data, 0o600)
		},
		Remove: func(_ context.Context, l sdk.Location) error {
			if err := os.Remove(l.URI); !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			return nil
		},
	}, runtime.GOOS)}
}

func (b brokenSource) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	d, err := b.Source.Describe(ctx, r)
	if b.defect.describe != nil {
		b.defect.describe(&d)
	}
	return d, err
}

func (b brokenSource) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	if b.defect.fetch == nil {
		return b.Source.Fetch(ctx, r, send)
	}
	return b.defect.fetch(ctx, b.Source, r, send)
}

func (b brokenSource) Store(ctx context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	if b.defect.store == nil {
		return b.Source.Store(ctx, r)
	}
	return b.defect.store(ctx, b.Source, r)
}

func (b brokenSource) Remove(ctx context.Context, r pluginv1.RemoveRequest) error {
	if b.defect.remove == nil {
		return b.Source.Remove(ctx, r)
	}
	return b.defect.remove(ctx, b.Source, r)
}

// brokenKeys is a KeyProvider with a defect.
type brokenKeys struct {
	pluginv1.KeyProvider
	defect defect
}

func newKeys(d defect) pluginv1.KeyProvider {
	return brokenKeys{defect: d, KeyProvider: sdk.NewKeyProvider(sdk.KeyProvider{
		Name: d.name, Version: version, OS: []string{runtime.GOOS}, Secrets: []string{"spec.providerConfig.token"},
		Validate: func(k sdk.Key) []sdk.Violation { return checkPlace("spec.passphraseURI", k.URI, k.ProviderConfig) },
		Passphrase: func(ctx context.Context, k sdk.Key) (v1alpha1.Secret, error) {
			body, err := open(ctx, k.URI)
			if err != nil {
				return v1alpha1.Secret{}, err
			}
			data, err := io.ReadAll(body)
			return v1alpha1.NewSecret(data), errors.Join(err, body.Close())
		},
	}, runtime.GOOS)}
}

func (b brokenKeys) Describe(ctx context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	d, err := b.KeyProvider.Describe(ctx, r)
	if b.defect.describe != nil {
		b.defect.describe(&d)
	}
	return d, err
}

func (b brokenKeys) Passphrase(ctx context.Context, r pluginv1.PassphraseRequest) ([]byte, error) {
	if b.defect.passphrase == nil {
		return b.KeyProvider.Passphrase(ctx, r)
	}
	return b.defect.passphrase(ctx, b.KeyProvider, r)
}

type (
	sender  = func(pluginv1.Chunk) error
	fetcher = func(context.Context, pluginv1.Source, pluginv1.FetchRequest, sender) error
	teller  = func(context.Context, pluginv1.KeyProvider, pluginv1.PassphraseRequest) ([]byte, error)
)

func defectsOfSources() []defect {
	const of = v1alpha1.KindRemoteConfig
	return []defect{
		{name: "sound", kind: of},
		{name: "cookieless", kind: of, check: "cookie", says: "the plugin writes its handshake line", cookieless: true},
		{name: "lingering", kind: of, check: "shutdown", says: "the plugin still runs", lingering: true},
		{name: "targetless", kind: of, check: "describe", says: "ReportTarget among the kinds: false", describe: func(d *pluginv1.Description) { d.Kinds = d.Kinds[:1] }},
		{name: "trimming", kind: of, check: "object", says: "it is not what served/stream.yaml has", fetch: trimming},
		{name: "growing", kind: of, check: "object", says: "it differs from the one of the call before", fetch: growing()},
		{name: "statusless", kind: of, check: "object", says: "with the facts map[] instead of map[status:404]", fetch: failing(func(e *pluginv1.Error) { e.Facts = nil })},
		{name: "unlimited", kind: of, check: "max-bytes", says: "Fetch sent more than", fetch: asking(func(r *pluginv1.FetchRequest) { r.MaxBytes = 1 << 30 })},
		{name: "cautious", kind: of, check: "max-bytes", says: "exactly the size of the object, Fetch fails", fetch: asking(func(r *pluginv1.FetchRequest) { r.MaxBytes-- })},
		{name: "hopeful", kind: of, check: "max-bytes", says: "a Precondition that is not final", fetch: failing(func(e *pluginv1.Error) { e.Final = false })},
		{name: "eager", kind: of, check: "validate-only", says: "only to validate the document", fetch: asking(func(r *pluginv1.FetchRequest) { r.ValidateOnly = false })},
		{name: "curious", kind: of, check: "validate-only", says: "connects to ${server}", fetch: curious},
		{name: "uncancelled", kind: of, check: "cancel", says: "was still open after", fetch: uncancelled},
		{name: "storeless", kind: of, check: "store", says: "instead of InvalidConfig", store: func(context.Context, pluginv1.Source, pluginv1.StoreRequest) (pluginv1.Stored, error) {
			return pluginv1.Stored{}, sdk.Unsupported("", "stores nothing", "")
		}},
		{name: "hidden-store", kind: of, check: "store", says: "Store succeeds", store: hiddenStore, describe: func(d *pluginv1.Description) { d.Capabilities = d.Capabilities[:1] }},
		{name: "curious-store", kind: of, check: "store", says: "Store connects to ${server}", store: curiousStore},
		{name: "counting-store", kind: of, check: "store", says: "the second one answers another location", store: stored(func(s *pluginv1.Stored, call int) { s.URI += strings.Repeat("x", call) })},
		{name: "leaking-store", kind: of, check: "store", says: "a secret of the provider_config", store: leakingStore},
		{name: "losing-store", kind: of, check: "store", says: "Fetch gets other bytes", store: func(ctx context.Context, sound pluginv1.Source, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
			r.Data = bytes.ToUpper(r.Data)
			return sound.Store(ctx, r)
		}},
		{name: "strict-store", kind: of, check: "store", says: "Remove, call 2, fails", remove: strictRemove()},
		{name: "keeping-store", kind: of, check: "store", says: "still gets the object after Remove", remove: func(context.Context, pluginv1.Source, pluginv1.RemoveRequest) error { return nil }},
		{name: "lenient", kind: of, check: "unknown-field", says: "Fetch succeeded instead of answering InvalidConfig", fetch: asking(func(r *pluginv1.FetchRequest) { r.Document = known(r.Document) })},
		{name: "any-target", kind: of, check: "other-target", says: "Fetch succeeded instead of answering Unsupported", fetch: asking(func(r *pluginv1.FetchRequest) { r.Target.OS = runtime.GOOS })},
		{name: "caching", kind: of, check: "plan-writes-nothing", says: "home/cache should not be there", fetch: before(func([]byte) error { return os.WriteFile("cache", nil, 0o600) })},
		{name: "shell", kind: of, check: "no-command", says: "Fetch on an image root ran a command", fetch: before(func([]byte) error {
			return exec.CommandContext(context.Background(), "true").Run()
		})},
		{name: "small-messages", kind: of, check: "large-document", says: "10 MiB", smallMessages: true},
		{name: "talkative", kind: of, check: "secrets", says: "stderr", fetch: logged},
	}
}

func defectsOfKeyProviders() []defect {
	const of = v1alpha1.KindEncryptedConfig
	return []defect{
		{name: "sound", kind: of},
		{name: "cookieless", kind: of, check: "cookie", says: "the plugin writes its handshake line", cookieless: true},
		{name: "lingering", kind: of, check: "shutdown", says: "the plugin still runs", lingering: true},
		{name: "trimming", kind: of, check: "object", says: "it is not what served/key has", passphrase: trimmed},
		{name: "misnamed", kind: of, check: "describe", says: `the name is "another-name"`, describe: misnamed},
		{name: "eager", kind: of, check: "validate-only", says: "Passphrase sent one although", passphrase: askingKey(func(r *pluginv1.PassphraseRequest) { r.ValidateOnly = false })},
		{name: "uncancelled", kind: of, check: "cancel", says: "was still open after", passphrase: uncancelledKey},
		{name: "lenient", kind: of, check: "unknown-field", says: "Passphrase succeeded instead of answering InvalidConfig", passphrase: askingKey(func(r *pluginv1.PassphraseRequest) { r.Document = known(r.Document) })},
		{name: "any-target", kind: of, check: "other-target", says: "Passphrase succeeded instead of answering Unsupported", passphrase: askingKey(func(r *pluginv1.PassphraseRequest) { r.Target.OS = runtime.GOOS })},
		{name: "caching", kind: of, check: "plan-writes-nothing", says: "home/cache should not be there", passphrase: beforeKey(func() error { return os.WriteFile("cache", nil, 0o600) })},
		{name: "shell", kind: of, check: "no-command", says: "Passphrase on an image root ran a command", passphrase: beforeKey(func() error {
			return exec.CommandContext(context.Background(), "true").Run()
		})},
		{name: "small-messages", kind: of, check: "large-document", says: "10 MiB", smallMessages: true},
		{name: "talkative", kind: of, check: "secrets", says: "stderr", passphrase: loggedKey},
	}
}

// asking changes the request.
func asking(change func(*pluginv1.FetchRequest)) fetcher {
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
		change(&r)
		return sound.Fetch(ctx, r, send)
	}
}

// failing changes the error of what is not ready.
func failing(change func(*pluginv1.Error)) fetcher {
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
		err := sound.Fetch(ctx, r, send)
		if e := pluginv1.AsError(err); e != nil && e.Code == pluginv1.CodePrecondition {
			changed := *e
			change(&changed)
			return &changed
		}
		return err
	}
}

// before does something first.
func before(do func(doc []byte) error) fetcher {
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
		if err := do(r.Document); err != nil {
			return err
		}
		return sound.Fetch(ctx, r, send)
	}
}

// trimming drops a line feed at the end of an object.
func trimming(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
	return sound.Fetch(ctx, r, func(c pluginv1.Chunk) error {
		c.Data = bytes.TrimSuffix(c.Data, []byte("\n"))
		return send(c)
	})
}

// growing appends a byte more with each call to an object that the case does not compare.
func growing() fetcher {
	calls := 0
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
		calls++
		return sound.Fetch(ctx, r, func(c pluginv1.Chunk) error {
			if !c.Begin && bytes.Contains(r.Document, []byte("uncompared")) {
				c.Data = append(c.Data, strings.Repeat("x", calls)...)
			}
			return send(c)
		})
	}
}

// curious looks whether the object exists.
func curious(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
	if err := sound.Fetch(ctx, r, send); err != nil || !r.ValidateOnly {
		return err
	}
	r.ValidateOnly = false
	_ = sound.Fetch(ctx, r, func(pluginv1.Chunk) error { return nil }) // the error is of no interest
	return nil
}

// uncancelled continues when the call is cancelled.
func uncancelled(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
	return sound.Fetch(context.WithoutCancel(ctx), r, send)
}

// hiddenStore answers every request.
func hiddenStore(context.Context, pluginv1.Source, pluginv1.StoreRequest) (pluginv1.Stored, error) {
	return pluginv1.Stored{}, nil
}

// curiousStore looks whether the destination exists.
func curiousStore(ctx context.Context, sound pluginv1.Source, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	s, err := sound.Store(ctx, r)
	if err != nil || !r.ValidateOnly || filepath.IsAbs(r.Storage.URIPrefix) {
		return s, err
	}
	if body, err := open(ctx, r.Storage.URIPrefix); err == nil {
		_ = body.Close() // it is not read
	}
	return s, nil
}

// stored changes each answer of a Store that keeps an object, by the number of the call from 0.
func stored(change func(s *pluginv1.Stored, call int)) func(context.Context, pluginv1.Source, pluginv1.StoreRequest) (pluginv1.Stored, error) {
	calls := 0
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
		s, err := sound.Store(ctx, r)
		if err == nil && !r.ValidateOnly {
			change(&s, calls)
			calls++
		}
		return s, err
	}
}

// leakingStore answers with the settings of the storage.
func leakingStore(ctx context.Context, sound pluginv1.Source, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	return stored(func(s *pluginv1.Stored, _ int) { s.ProviderConfig = r.Storage.ProviderConfig })(ctx, sound, r)
}

// strictRemove fails where there is nothing.
func strictRemove() func(context.Context, pluginv1.Source, pluginv1.RemoveRequest) error {
	removed := map[string]bool{}
	return func(ctx context.Context, sound pluginv1.Source, r pluginv1.RemoveRequest) error {
		if removed[r.Storage.URIPrefix] {
			return sdk.Precondition("there is no such object", "")
		}
		removed[r.Storage.URIPrefix] = true
		return sound.Remove(ctx, r)
	}
}

// logged logs the object.
func logged(ctx context.Context, sound pluginv1.Source, r pluginv1.FetchRequest, send sender) error {
	return sound.Fetch(ctx, r, func(c pluginv1.Chunk) error {
		log(c.Data)
		return send(c)
	})
}

func log(data []byte) { fmt.Fprintf(os.NewFile(2, "stderr"), "got %x\n", data) }

// known drops unknown fields of the spec.
func known(doc []byte) []byte {
	var all struct {
		v1alpha1.Header
		Spec map[string]any `json:"spec"`
	}
	if json.Unmarshal(doc, &all) != nil {
		return doc
	}
	delete(all.Spec, "conformanceUnknownField")
	out, err := json.Marshal(all)
	if err != nil {
		return doc
	}
	return out
}

// askingKey changes the request.
func askingKey(change func(*pluginv1.PassphraseRequest)) teller {
	return func(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error) {
		change(&r)
		return sound.Passphrase(ctx, r)
	}
}

// beforeKey does something first.
func beforeKey(do func() error) teller {
	return func(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error) {
		if err := do(); err != nil {
			return nil, err
		}
		return sound.Passphrase(ctx, r)
	}
}

func uncancelledKey(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error) {
	return sound.Passphrase(context.WithoutCancel(ctx), r)
}

func trimmed(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error) {
	passphrase, err := sound.Passphrase(ctx, r)
	return bytes.TrimSuffix(passphrase, []byte("\n")), err
}

func loggedKey(ctx context.Context, sound pluginv1.KeyProvider, r pluginv1.PassphraseRequest) ([]byte, error) {
	passphrase, err := sound.Passphrase(ctx, r)
	log(passphrase)
	return passphrase, err
}
