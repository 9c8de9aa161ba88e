package conformance

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// storedName is the name of the object that the kit stores behind the location of the document.
const storedName = "-conformance"

// stores stores an object beside the object of the document, with the settings of the document, and removes it.
func stores(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	d, err := p.describe(ctx, f.planning(), false)
	if err != nil {
		return skipped("Describe fails, see describe"), nil //nolint:nilerr // that check reports it
	}
	has := slices.Contains(d.Capabilities, pluginv1.CapabilityStore)
	_, err = p.store(ctx, pluginv1.StoreRequest{Storage: pluginv1.Storage{Target: f.planning().Target}, ValidateOnly: true})
	switch {
	case errors.As(err, new(*crash)):
		return result{}, err
	case !has && err == nil:
		return failed(finding{
			clause: "P-40", expected: "Store is Unsupported without the capability store",
			got: "Store succeeds", cause: "Store was added without its capability",
		}), nil
	case !has:
		return skipped("the plugin does not have the capability store"), nil
	}
	if w := wrongAnswer(err, pluginv1.CodeInvalidConfig); w != "" || !namesPrefix(err) {
		return failed(finding{
			clause: clauseOf(err, "P-40"), expected: "with the capability store, Store without uri_prefix is InvalidConfig at the field uriPrefix",
			got:   fmt.Sprintf("Store without uri_prefix and with validate_only %s", cmp.Or(w, "names other fields")),
			cause: causeOf(err, "the capability was added without the call, or the prefix is not validated"),
		}), nil
	}
	return f.storesBeside(ctx, p)
}

func namesPrefix(err error) bool {
	e := contractError(err)
	return e != nil && slices.ContainsFunc(e.Violations, func(v document.Violation) bool { return v.Field == "uriPrefix" })
}

// store calls Store.
func (p *plugin) store(ctx context.Context, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	s, err := p.Store(ctx, r)
	return s, p.explain(err)
}

// remove calls Remove.
func (p *plugin) remove(ctx context.Context, r pluginv1.RemoveRequest) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return p.explain(p.Remove(ctx, r))
}

// storesBeside validates, stores twice, fetches, and removes twice.
func (f *fixture) storesBeside(ctx context.Context, p *plugin) (result, error) {
	r := f.planning()
	var doc struct {
		v1alpha1.Header
		Spec v1alpha1.RemoteConfigSpec `json:"spec"`
	}
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return result{}, fmt.Errorf("decode the document of the case: %w", err)
	}
	storing := pluginv1.StoreRequest{
		Storage: pluginv1.Storage{URIPrefix: doc.Spec.URI, Access: pluginv1.AccessRole, ProviderConfig: doc.Spec.ProviderConfig, Target: r.Target},
		Name:    storedName, Data: []byte("first"), ValidateOnly: true,
	}
	seen := f.runner.counterpart.seen.Load()
	_, err := p.store(ctx, storing)
	if f.runner.counterpart.seen.Load() > seen {
		return failed(finding{
			clause: "P-43", expected: "validate_only makes no connection", got: "with validate_only, Store connects to ${server}",
			cause: "the plugin looks whether the destination exists; a storage is validated where there is no network",
		}), nil
	}
	if err != nil {
		return skipped("the location and the settings of the document are no storage of this plugin: %v", err), nil
	}
	storing.ValidateOnly = false
	first, err := p.store(ctx, storing)
	if err != nil {
		return skipped("the counterpart of the case keeps no object: %v", err), nil
	}
	storing.Data = []byte("second")
	again, err := p.store(ctx, storing)
	switch canary := f.runner.counterpart.values["canary"]; {
	case err != nil || again.URI != first.URI || again.Provider != first.Provider:
		return failed(finding{
			clause: "P-56", expected: "Store with the same name replaces the object, and answers in the same meaning",
			got:   fmt.Sprintf("the first Store succeeds, and the second one answers another location, or an error: %v", err),
			cause: "the name of the object, or a condition of the write, depends on more than the name of the request",
		}), nil
	case tracesOf(canary).in(slices.Concat(first.ProviderConfig, []byte(first.URI+first.ReportURI))):
		return failed(finding{
			clause: "P-56", expected: "the reference has no credential of the storage", got: "a secret of the provider_config of the storage is in the answer of Store",
			cause: "the settings of the storage are answered as a whole",
		}), nil
	}
	return f.removesStored(ctx, p, storing)
}

// removesStored fetches what was stored with the settings of the storage, and removes it.
func (f *fixture) removesStored(ctx context.Context, p *plugin, r pluginv1.StoreRequest) (result, error) {
	fetch := func() ([]byte, error) {
		doc, err := replaceURI(f.runner.document, r.Storage.URIPrefix+r.Name)
		if err != nil {
			return nil, err
		}
		return p.get(ctx, withDocument(f.planning(), doc), query{})
	}
	if got, err := fetch(); err != nil || !bytes.Equal(got, r.Data) {
		return failed(finding{
			clause: "P-56", expected: "Fetch of uri_prefix with the name gets the bytes that were stored last",
			got:   fmt.Sprintf("Fetch gets other bytes, or an error: %v", err),
			cause: "the object is stored under another name, or is not replaced",
		}), nil
	}
	for try := range 2 {
		if err := p.remove(ctx, pluginv1.RemoveRequest{Storage: r.Storage, Name: r.Name}); err != nil {
			return failed(finding{
				clause: "P-59", expected: "Remove succeeds, also when there is nothing to remove",
				got: fmt.Sprintf("Remove, call %d, fails: %v", try+1, err), cause: "an object that is not there is taken for a failure",
			}), nil
		}
	}
	if _, err := fetch(); err == nil {
		return failed(finding{
			clause: "P-59", expected: "Remove removes the object", got: "Fetch still gets the object after Remove",
			cause: "the object is removed under another name",
		}), nil
	}
	return passed(), nil
}

// replaceURI returns the document with another spec.uri and without a digest.
func replaceURI(data []byte, uri string) ([]byte, error) {
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	if spec, is := root["spec"].(map[string]any); is {
		spec["uri"] = uri
		delete(spec, "sha256")
	}
	return json.Marshal(root)
}
