package answers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// storedName is the name of the object that the kit stores behind the location of the document.
const storedName = "-conformance"

// Stores stores an object beside the object of the document, with the settings of the document, and removes it.
func Stores(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	d, err := p.CallDescribe(ctx, f.Planning(), false)
	if err != nil {
		return rig.Skipped("Describe fails, see describe"), nil //nolint:nilerr // that check reports it
	}
	has := slices.Contains(d.Capabilities, pluginv1.CapabilityStore)
	_, err = store(ctx, p, pluginv1.StoreRequest{Storage: pluginv1.Storage{Target: f.Planning().Target}, ValidateOnly: true})
	switch {
	case errors.As(err, new(*process.CrashError)):
		return rig.Result{}, err
	case !has && err == nil:
		return rig.Failed(rig.Finding{
			Clause: "P-40", Expected: "Store is Unsupported without the capability store",
			Got: "Store succeeds", Cause: "Store was added without its capability",
		}), nil
	case !has:
		return rig.Skipped("the plugin does not have the capability store"), nil
	}
	if w := process.WrongAnswer(err, pluginv1.CodeInvalidConfig); w != "" || !namesPrefix(err) {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-40"), Expected: "with the capability store, Store without uri_prefix is InvalidConfig at the field uriPrefix",
			Got:   fmt.Sprintf("Store without uri_prefix and with validate_only %s", cmp.Or(w, "names other fields")),
			Cause: process.CauseOf(err, "the capability was added without the call, or the prefix is not validated"),
		}), nil
	}
	return storesBeside(ctx, f, p)
}

func namesPrefix(err error) bool {
	e := process.ContractError(err)
	return e != nil && slices.ContainsFunc(e.Violations, func(v document.Violation) bool { return v.Field == "uriPrefix" })
}

// store calls Store.
func store(ctx context.Context, p *process.Plugin, r pluginv1.StoreRequest) (pluginv1.Stored, error) {
	ctx, cancel := context.WithTimeout(ctx, process.CallTimeout)
	defer cancel()
	s, err := p.Store(ctx, r)
	return s, p.Explain(err)
}

// remove calls Remove.
func remove(ctx context.Context, p *process.Plugin, r pluginv1.RemoveRequest) error {
	ctx, cancel := context.WithTimeout(ctx, process.CallTimeout)
	defer cancel()
	return p.Explain(p.Remove(ctx, r))
}

// storesBeside validates, stores twice, fetches, and removes twice.
func storesBeside(ctx context.Context, f *rig.Fixture, p *process.Plugin) (rig.Result, error) {
	r := f.Planning()
	var doc struct {
		v1alpha1.Header
		Spec v1alpha1.RemoteConfigSpec `json:"spec"`
	}
	if err := json.Unmarshal(r.Document, &doc); err != nil {
		return rig.Result{}, fmt.Errorf("decode the document of the case: %w", err)
	}
	storing := pluginv1.StoreRequest{
		Storage: pluginv1.Storage{URIPrefix: doc.Spec.URI, Access: pluginv1.AccessRole, ProviderConfig: doc.Spec.ProviderConfig, Target: r.Target},
		Name:    storedName, Data: []byte("first"), ValidateOnly: true,
	}
	seen := f.Runner.Counterpart.Seen.Load()
	_, err := store(ctx, p, storing)
	if f.Runner.Counterpart.Seen.Load() > seen {
		return rig.Failed(rig.Finding{
			Clause: "P-43", Expected: "validate_only makes no connection", Got: "with validate_only, Store connects to ${server}",
			Cause: "the plugin looks whether the destination exists; a storage is validated where there is no network",
		}), nil
	}
	if err != nil {
		return rig.Skipped("the location and the settings of the document are no storage of this plugin: %v", err), nil
	}
	storing.ValidateOnly = false
	first, err := store(ctx, p, storing)
	if err != nil {
		return rig.Skipped("the counterpart of the case keeps no object: %v", err), nil
	}
	storing.Data = []byte("second")
	again, err := store(ctx, p, storing)
	switch canary := f.Runner.Counterpart.Values["canary"]; {
	case err != nil || again.URI != first.URI || again.Provider != first.Provider:
		return rig.Failed(rig.Finding{
			Clause: "P-56", Expected: "Store with the same name replaces the object, and answers in the same meaning",
			Got:   fmt.Sprintf("the first Store succeeds, and the second one answers another location, or an error: %v", err),
			Cause: "the name of the object, or a condition of the write, depends on more than the name of the request",
		}), nil
	case testcase.TracesOf(canary).In(slices.Concat(first.ProviderConfig, []byte(first.URI+first.ReportURI))):
		return rig.Failed(rig.Finding{
			Clause: "P-56", Expected: "the reference has no credential of the storage", Got: "a secret of the provider_config of the storage is in the answer of Store",
			Cause: "the settings of the storage are answered as a whole",
		}), nil
	}
	return removesStored(ctx, f, p, storing)
}

// removesStored fetches what was stored with the settings of the storage, and removes it.
func removesStored(ctx context.Context, f *rig.Fixture, p *process.Plugin, r pluginv1.StoreRequest) (rig.Result, error) {
	fetch := func() ([]byte, error) {
		doc, err := replaceURI(f.Runner.Document, r.Storage.URIPrefix+r.Name)
		if err != nil {
			return nil, err
		}
		return p.Get(ctx, rig.WithDocument(f.Planning(), doc), process.Query{})
	}
	if got, err := fetch(); err != nil || !bytes.Equal(got, r.Data) {
		return rig.Failed(rig.Finding{
			Clause: "P-56", Expected: "Fetch of uri_prefix with the name gets the bytes that were stored last",
			Got:   fmt.Sprintf("Fetch gets other bytes, or an error: %v", err),
			Cause: "the object is stored under another name, or is not replaced",
		}), nil
	}
	for try := range 2 {
		if err := remove(ctx, p, pluginv1.RemoveRequest{Storage: r.Storage, Name: r.Name}); err != nil {
			return rig.Failed(rig.Finding{
				Clause: "P-59", Expected: "Remove succeeds, also when there is nothing to remove",
				Got: fmt.Sprintf("Remove, call %d, fails: %v", try+1, err), Cause: "an object that is not there is taken for a failure",
			}), nil
		}
	}
	if _, err := fetch(); err == nil {
		return rig.Failed(rig.Finding{
			Clause: "P-59", Expected: "Remove removes the object", Got: "Fetch still gets the object after Remove",
			Cause: "the object is removed under another name",
		}), nil
	}
	return rig.Passed(), nil
}

// replaceURI returns the document with another spec.uri and without a digest.
func replaceURI(data []byte, uri string) ([]byte, error) {
	root, err := testcase.Parse(data)
	if err != nil {
		return nil, err
	}
	if spec, is := root["spec"].(map[string]any); is {
		spec["uri"] = uri
		delete(spec, "sha256")
	}
	return json.Marshal(root)
}
