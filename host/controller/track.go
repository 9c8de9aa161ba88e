package controller

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// track watches the objects of a kind from now on.
func (r *Reconciler) track(ctx context.Context, kind schema.GroupVersionKind) error {
	var object unstructured.Unstructured
	object.SetGroupVersionKind(kind)
	if err := r.tracker.Watch(ctrl.LoggerFrom(ctx), &object, handler.EnqueueRequestsFromMapFunc(r.ofObject)); err != nil {
		return fmt.Errorf("watch %s: %w", kind.GroupKind(), err)
	}
	return nil
}

// syncLimit is how long a reconciliation waits for the objects of a kind that was not watched before.
const syncLimit = 5 * time.Second

// cached reads an object of a kind that is tracked. A kind that the manager may not list has no objects that come: without a
// limit the read would wait for them forever.
func (r *Reconciler) cached(ctx context.Context, key client.ObjectKey, object *unstructured.Unstructured) error {
	limited, cancel := context.WithTimeout(ctx, syncLimit)
	defer cancel()
	err := r.Client.Get(limited, key, object)
	if err == nil || apierrors.IsNotFound(err) || limited.Err() == nil {
		return err //nolint:wrapcheck // the caller says what it is for
	}
	kind := object.GroupVersionKind().GroupKind()
	return &stop{
		condition: bootstrap.ConditionPluginsReady, status: metav1.ConditionUnknown, reason: bootstrap.ReasonKindNotReadable,
		message: fmt.Sprintf("the objects of %s cannot be listed: let a ClusterRole with the label %s allow get, list, watch, create and patch",
			kind, "machineadm.cluster.x-k8s.io/aggregate-to-manager"),
		again: 2 * syncLimit, // no event says that a role has changed
	}
}

func (r *Reconciler) ofObject(_ context.Context, object client.Object) []reconcile.Request {
	return r.readers.requests(input{object.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)})
}
