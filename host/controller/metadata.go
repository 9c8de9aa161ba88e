package controller

import (
	"context"
	"fmt"

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
