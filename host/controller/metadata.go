package controller

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// metadata is what the cache has of a Secret or ConfigMap; nil if it does not exist.
func (r *Reconciler) metadata(ctx context.Context, kind string, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(kind))
	if err := r.Client.Get(ctx, key, found); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // that it does not exist is no error
	} else if err != nil {
		return nil, fmt.Errorf("get the metadata of %s %s: %w", kind, key.Name, err)
	}
	return found, nil
}

// own corrects the owner of a Secret that was restored from a backup: the owner has the same name, and another UID.
func (r *Reconciler) own(ctx context.Context, secret *metav1.PartialObjectMetadata, owner metav1.OwnerReference) error {
	if slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == owner.UID }) {
		return nil
	}
	before := secret.DeepCopy()
	former := func(o metav1.OwnerReference) bool {
		return groupOf(o) == groupOf(owner) && o.Kind == owner.Kind && o.Name == owner.Name
	}
	secret.OwnerReferences = append(slices.DeleteFunc(secret.OwnerReferences, former), owner)
	// The garbage collector may have removed it meanwhile; that event starts the next reconciliation.
	if err := r.Client.Patch(ctx, secret, client.MergeFrom(before)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("correct the owner of Secret %s: %w", secret.Name, err)
	}
	return nil
}
