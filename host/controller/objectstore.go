package controller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/plugins"
	"github.com/machineadm/machineadm/host/controller/render"
	"github.com/machineadm/machineadm/host/controller/store"
)

// objectOf is the object of a Secret, nil if it has none.
func objectOf(secret metav1.Object) (*store.Terms, *store.Object) {
	if terms := store.ReadTerms(secret.GetAnnotations()); terms != nil && terms.Object != nil {
		return terms, terms.Object
	}
	return nil, nil
}

// resolved reads a storage with the values of its Secrets, and a digest of both. The manager reads them for each call, and keeps none.
func (rd *reading) resolved(ctx context.Context, storage string) (*bootstrap.MachineBootstrapStorageSpec, [sha256.Size]byte, error) {
	defer rd.release() // before the call
	var sum [sha256.Size]byte
	refused := func(format string, args ...any) error {
		return invalid(bootstrap.ConditionDataStored, bootstrap.ReasonInvalidStorage, format, args...)
	}
	of := bootstrap.PluginReference{APIGroup: bootstrap.Group, Kind: bootstrap.KindMachineBootstrapStorage, Name: storage}
	object, err := rd.read(ctx, storageField, &of)
	if err != nil {
		return nil, sum, err
	}
	var found bootstrap.MachineBootstrapStorage
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &found); err != nil {
		return nil, sum, fmt.Errorf("read %s %s: %w", of.Kind, storage, err)
	}
	if found.Spec.Source == nil {
		return nil, sum, refused("spec.source: is missing, and the documents of the config are in an object store: restore it")
	}
	spec, err := json.Marshal(found.Spec)
	if err != nil {
		return nil, sum, fmt.Errorf("encode the spec of the storage: %w", err)
	}
	var failed error
	values, err := render.Contract(bootstrap.GroupVersion().String(), of.Kind, spec, func(secret, key string) ([]byte, error) {
		value, err := rd.credential(ctx, secret, key)
		failed = cmp.Or(failed, err)
		return value, err
	})
	switch {
	case failed != nil:
		return nil, sum, failed
	case err != nil:
		return nil, sum, refused("%s", err)
	case !rd.r.OwnIdentity && !hasReference(found.Spec.Source.ProviderConfig):
		return nil, sum, refused("spec.source.%s", noCredentials)
	case !rd.r.OwnIdentity && found.Spec.Encryption != nil && !hasReference(found.Spec.Encryption.ProviderConfig):
		return nil, sum, refused("spec.encryption.%s", noCredentials)
	}
	var with bootstrap.MachineBootstrapStorageSpec
	text, ok := values.(json.RawMessage)
	if !ok || json.Unmarshal(text, &with) != nil {
		return nil, sum, refused("spec: cannot be read")
	}
	return &with, sha256.Sum256(text), nil
}

const noCredentials = "providerConfig: refers to no Secret with credentials, and storages may not use the manager's own: " +
	"add a reference, or start the manager with --storage-own-identity"

func hasReference(settings *apiextensionsv1.JSON) bool {
	if settings == nil {
		return false
	}
	found, err := render.References(settings.Raw)
	return err == nil && len(found) > 0
}

// credential reads a value of a storage. It is no input of the data: another one asks for no rollout.
func (rd *reading) credential(ctx context.Context, secret, key string) ([]byte, error) {
	value, err := rd.value(ctx, bootstrap.ConditionDataStored, "Secret", secret, key)
	if err != nil {
		return nil, err
	}
	of := input{schema.GroupKind{Kind: "Secret"}, client.ObjectKey{Namespace: rd.config.Namespace, Name: secret}}
	if known, err := rd.r.metadata(ctx, "Secret", of.ObjectKey); err != nil {
		return nil, err
	} else if known != nil && !moves(known) {
		rd.left[of] = struct{}{}
	}
	return value, nil
}

// storageCall is a call of a plugin for a storage, with the values of its Secrets.
type storageCall func(ctx context.Context, in *bootstrap.MachineBootstrapStorageSpec) error

// bySource is a call of the source plugin of an object, with the storage in the form of the contract.
func (w *work) bySource(o *store.Object, call func(ctx context.Context, s pluginv1.Source, in pluginv1.Storage) error) storageCall {
	return func(ctx context.Context, in *bootstrap.MachineBootstrapStorageSpec) error {
		storage := pluginv1.Storage{URIPrefix: o.URIPrefix, Access: o.Access, ProviderConfig: raw(in.Source.ProviderConfig), Target: plugins.Here()}
		return w.r.Plugins.Source(ctx, w.config.Namespace, o.Provider, func(ctx context.Context, s pluginv1.Source) error {
			return call(ctx, s, storage)
		})
	}
}

func raw(settings *apiextensionsv1.JSON) []byte {
	if settings == nil {
		return nil
	}
	return settings.Raw
}

// call calls a plugin for an object. Its error is a stop at DataStored, or a fault. It has no pause of its own.
func (w *work) call(ctx context.Context, o *store.Object, what string, call storageCall) ([sha256.Size]byte, error) {
	where := fmt.Sprintf("%s %s: %s", bootstrap.KindMachineBootstrapStorage, o.Storage, what)
	in, sum, err := w.reading.resolved(ctx, o.Storage)
	if s := asStop(err); s != nil {
		at := *s
		at.condition = bootstrap.ConditionDataStored
		return sum, prefix(where, &at)
	} else if err != nil {
		return sum, err
	}
	if in.Source.Provider != o.Provider {
		return sum, invalid(bootstrap.ConditionDataStored, bootstrap.ReasonInvalidStorage,
			"%s: spec.source.provider: is %s, and was %s when the documents were stored: restore it", where, in.Source.Provider, o.Provider)
	}
	err = call(ctx, in)
	var failed *plugins.Error
	if !errors.As(err, &failed) {
		return sum, err
	}
	s := &stop{
		condition: bootstrap.ConditionDataStored, status: metav1.ConditionFalse, reason: failed.Code, message: where + ": " + failed.Error(), again: failed.After,
	}
	if failed.Waits() {
		s.status = metav1.ConditionUnknown
	}
	return sum, errors.Join(s, failed)
}

// The pauses between two calls for one object.
const (
	firstTry  = time.Second
	seldomTry = 5 * time.Minute
)

// try calls the plugin of an object unless the call before has failed a moment ago and nothing has changed since. Its error is a stop at
// DataStored, or a fault.
func (w *work) try(ctx context.Context, o *store.Object, what string, call storageCall) error {
	p := w.r.paces.of(client.ObjectKeyFromObject(w.config))
	now := w.r.Now()
	var sum [sha256.Size]byte
	var err error
	if left := p.next.Sub(now); left > 0 {
		if _, sum, err = w.reading.resolved(ctx, o.Storage); err == nil && sum == p.source && p.failed != nil {
			again := *p.failed
			again.again = left
			return &again
		}
	}
	if sum, err = w.call(ctx, o, what, call); err == nil {
		p.failures, p.next, p.failed = 0, time.Time{}, nil
		return nil
	}
	s := asStop(err)
	if s == nil {
		return err
	}
	failed := *s
	if failed.reason != pluginv1.CodeRetry.String() || failed.again != plugins.Busy { // a call that found no room was none
		failed.again = max(failed.again, min(firstTry<<min(p.failures, 16), seldomTry))
		p.failures++
	}
	p.source, p.next, p.failed = sum, now.Add(failed.again), &failed
	return &failed
}

// noReport says that the store has no report yet: a store that does not list its objects answers 403 for one that is not there.
func noReport(err error) bool {
	var failed *plugins.Error
	return errors.As(err, &failed) && (failed.Status == "403" || failed.Status == "404" || failed.Status == "410")
}

// fetchReport returns the report of a machine from its store.
func (w *work) fetchReport(ctx context.Context, o *store.Object) (body []byte, err error) {
	_, err = w.call(ctx, o, "read the report by provider "+o.Provider, w.bySource(o, func(ctx context.Context, s pluginv1.Source, in pluginv1.Storage) error {
		document, err := o.ReportDocument(in.ProviderConfig)
		if err != nil {
			return err
		}
		return s.Fetch(ctx, pluginv1.FetchRequest{Document: document, Target: in.Target, MaxBytes: report.MaxBytes}, func(c pluginv1.Chunk) error {
			if c.Begin {
				body = nil
			}
			body = append(body, c.Data...)
			return nil
		})
	}))
	return body, err
}
