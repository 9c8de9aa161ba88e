package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/store"
)

// Remote documents are stored by a source plugin (objects.go), or by the controller of a claim (claim.go).

// resume stores documents that a manager before, or this one, has not stored.
func (w *work) resume(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	w.none()
	if !metav1.IsControlledBy(data, w.config) {
		if err := w.adopt(data, []string{"its owner"}); err != nil {
			return ctrl.Result{}, err
		}
	}
	if !w.owner.object.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForOwner,
			"%s %s is being deleted: it gets no data", w.owner.kind, w.owner.object.GetName())
	}
	return w.redeliver(ctx)
}

// redeliver delivers the documents that the Secret has.
func (w *work) redeliver(ctx context.Context) (ctrl.Result, error) {
	secret := &corev1.Secret{}
	if err := w.r.Live.Get(ctx, w.dataKey(), secret); err != nil {
		return ctrl.Result{}, ignoreNotFound("get the Secret with the data", err)
	}
	terms := store.ReadTerms(secret.Annotations)
	if !terms.Remote() || len(secret.Data[documentsKey]) == 0 || !secret.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil // its event starts the next reconciliation
	}
	return w.deliver(ctx, secret, terms)
}

// deliver stores the documents of a Secret, and writes the data that refers to them. It does the same again when the reference is renewed.
func (w *work) deliver(ctx context.Context, secret *corev1.Secret, terms *store.Terms) (ctrl.Result, error) {
	stored := w.store
	if terms.Claim != nil {
		stored = w.claimed
	}
	reference, err := stored(ctx, secret, terms)
	if err != nil {
		return ctrl.Result{}, err
	}
	data, err := w.wrapped(ctx, []emit.Document{reference}, nil)
	w.reading.release()
	if err != nil {
		return ctrl.Result{}, err
	}
	annotation, err := terms.Annotation()
	if err != nil {
		return ctrl.Result{}, err //nolint:wrapcheck // it says what
	}
	before := secret.DeepCopy()
	secret.Annotations[bootstrap.AnnotationStorage] = annotation
	secret.Data[valueKey], secret.Data[formatKey] = data.Value, []byte(data.Format)
	err = w.r.Client.Patch(ctx, secret, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // its event starts the next reconciliation
		return ctrl.Result{}, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaiting, "Secret %s has changed", secret.Name)
	case err != nil:
		return ctrl.Result{}, fmt.Errorf("write the data into Secret %s: %w", secret.Name, err)
	}
	reached(w.config, bootstrap.ConditionDataStored, bootstrap.ReasonStored)
	w.available(secret.Name)
	return ctrl.Result{}, nil
}

// keepRemote looks after documents that are stored: their reference is renewed until the machine has joined.
func (w *work) keepRemote(ctx context.Context, data *metav1.PartialObjectMetadata) (ctrl.Result, error) {
	terms := store.ReadTerms(data.Annotations)
	switch {
	case !terms.Remote():
		return ctrl.Result{}, nil
	case terms.Object != nil && !slices.Contains(data.Finalizers, bootstrap.FinalizerStorage):
		return ctrl.Result{}, w.finalize(ctx, data, append(slices.Clone(data.Finalizers), bootstrap.FinalizerStorage))
	case terms.Removed != "":
		w.stored = metav1.Condition{Status: metav1.ConditionTrue, Reason: bootstrap.ReasonRemoved, Message: terms.Removed}
		return ctrl.Result{}, nil
	}
	if w.owner.joined || terms.Expired(data.CreationTimestamp.Time, w.r.Now()) {
		return ctrl.Result{}, nil
	}
	if terms.Claim != nil {
		renewed, err := w.renewed(ctx, data.Name, terms.Claim)
		if err != nil || !renewed {
			return w.said(ctrl.Result{}, err)
		}
		return w.said(w.redeliver(ctx))
	}
	at := terms.Object.Renewal()
	if at.IsZero() {
		return ctrl.Result{}, nil
	}
	if left := at.Sub(w.r.Now()); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	next, err := w.redeliver(ctx)
	return w.said(next, err)
}

func (w *work) removeRemote(ctx context.Context, terms *store.Terms) error {
	if terms.Claim != nil {
		return w.unclaim(ctx)
	}
	return w.removeObject(ctx, terms.Object)
}

// said records why a call for data that is there has failed: it stays, because the machine may have it.
func (w *work) said(next ctrl.Result, err error) (ctrl.Result, error) {
	s := asStop(err)
	if s == nil {
		return next, err
	}
	w.stored = metav1.Condition{Status: s.status, Reason: s.reason, Message: s.message}
	return ctrl.Result{RequeueAfter: s.again}, nil
}
