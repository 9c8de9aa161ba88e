package controller

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/pluginv1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/plugins"
	"github.com/machineadm/machineadm/host/controller/store"
)

// The documents that go to an object store are in the Secret of the config first, with the name of the object and without user data. So a
// manager that is killed at any step, or another one, stores the same bytes under the same name, and no object is without a record. A
// finalizer keeps the Secret until the object is removed.

// validate asks the plugin for the errors of the storage, before there is a record of an object.
func (w *work) validate(ctx context.Context, o *store.Object) error {
	return w.try(ctx, o, "validate the storage by provider "+o.Provider, w.bySource(o, func(ctx context.Context, s pluginv1.Source, in pluginv1.Storage) error {
		_, err := s.Store(ctx, pluginv1.StoreRequest{Storage: in, ValidateOnly: true})
		return err //nolint:wrapcheck // the caller says what it is for
	}))
}

// record makes a new Secret the record of an object.
func (w *work) record(secret *corev1.Secret) {
	secret.Finalizers = []string{bootstrap.FinalizerStorage}
	if w.r.WatchFilter != "" {
		secret.Labels[clusterv1.WatchLabel] = w.r.WatchFilter
	}
}

// store stores the documents of a Secret as an object, and returns the document by which a machine fetches them.
func (w *work) store(ctx context.Context, secret *corev1.Secret, terms *store.Terms) (emit.Document, error) {
	o, stream, now := terms.Object, secret.Data[documentsKey], w.r.Now()
	left := time.Duration(terms.Expiry) - now.Sub(secret.CreationTimestamp.Time)
	var stored pluginv1.Stored
	err := w.try(ctx, o, "store the documents by provider "+o.Provider, w.bySource(o, func(ctx context.Context, s pluginv1.Source, in pluginv1.Storage) (err error) {
		stored, err = s.Store(ctx, pluginv1.StoreRequest{
			Storage: in, Name: o.Name, Data: stream, Expiry: max(left, time.Minute), Report: terms.Reports(), RetryFor: plugins.RetryFor,
		})
		return err //nolint:wrapcheck // the caller says what it is for
	}))
	if err != nil {
		return emit.Document{}, err
	}
	if stored.ReportURI == "" {
		terms.Deadline = 0 // the provider has no place for a report
	}
	o.Stored, o.Until = now, stored.Expires
	return o.Reference(w.config.Name, stored, stream), nil
}

// finalize sets the finalizers of a Secret.
func (w *work) finalize(ctx context.Context, data *metav1.PartialObjectMetadata, finalizers []string) error {
	before := data.DeepCopy()
	data.Finalizers = finalizers
	err := w.r.Client.Patch(ctx, data, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	// A conflict is a change of the Secret, which starts the next reconciliation.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("write the finalizers of Secret %s: %w", data.Name, err)
	}
	return nil
}

// removeObject removes an object and the report beside it.
func (w *work) removeObject(ctx context.Context, o *store.Object) error {
	return w.try(ctx, o, "remove the documents by provider "+o.Provider, w.bySource(o, func(ctx context.Context, s pluginv1.Source, in pluginv1.Storage) error {
		return s.Remove(ctx, pluginv1.RemoveRequest{Storage: in, Name: o.Name, RetryFor: plugins.RetryFor}) //nolint:wrapcheck // the caller says what it is for
	}))
}

// farewellLimit is how long a deleted Secret waits for a store in which its object cannot be removed.
const farewellLimit = 5 * time.Minute

// farewell removes the object of a Secret that is deleted, and lets go of the Secret, at the latest after farewellLimit.
func (w *work) farewell(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	_, o := objectOf(data)
	if o != nil {
		err := w.removeObject(ctx, o)
		s := asStop(err)
		if err != nil && s == nil {
			return ctrl.Result{}, err
		}
		if left := farewellLimit - w.r.Now().Sub(data.DeletionTimestamp.Time); s != nil && left > 0 {
			mark(w.config, bootstrap.ConditionDataStored, s.status, s.reason, s.message)
			return ctrl.Result{RequeueAfter: min(max(s.again, firstTry), left)}, nil
		}
		if s != nil {
			note := fmt.Sprintf("the object %s of provider %s below %s may be left: %s", o.Name, o.Provider, o.URIPrefix, s.message)
			ctrl.LoggerFrom(ctx).Info("let go of an object", "storage", o.Storage, "provider", o.Provider, "object", o.Name, "reason", s.reason)
			w.r.events.record(w.config, corev1.EventTypeWarning, "ObjectLeft", note)
		}
	}
	w.r.paces.drop(client.ObjectKeyFromObject(w.config))
	return ctrl.Result{}, w.finalize(ctx, data, slices.DeleteFunc(slices.Clone(data.Finalizers), func(f string) bool { return f == bootstrap.FinalizerStorage }))
}

// orphaned says whether a Secret is deleted, and waits for the removal of its object. That of a Secret that has moved stays.
func orphaned(data metav1.Object) bool {
	_, moved := data.GetAnnotations()[DeleteForMove]
	return !moved && !data.GetDeletionTimestamp().IsZero() && slices.Contains(data.GetFinalizers(), bootstrap.FinalizerStorage)
}
