package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
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

// cached reads an object of a kind that is tracked. A kind that the manager may not list has no objects that come: without a
// limit the read would wait for them forever.
func (r *Reconciler) cached(ctx context.Context, key client.ObjectKey, object *unstructured.Unstructured) error {
	kind := object.GroupVersionKind().GroupKind()
	informer, err := r.tracker.Cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", kind, err)
	}
	if !r.unlisted.listed(ctx, kind, informer.HasSynced, r.wakeReaders) {
		return waiting(bootstrap.ConditionPluginsReady, bootstrap.ReasonKindNotReadable,
			"the objects of %s cannot be listed: let a ClusterRole with the label %s allow get, list, watch, create and patch",
			kind, "machineadm.cluster.x-k8s.io/aggregate-to-manager")
	}
	return r.Client.Get(ctx, key, object) //nolint:wrapcheck // the caller says what it is for
}

// wakeReaders reconciles the configs that read an object of a kind.
func (r *Reconciler) wakeReaders(kind schema.GroupKind) {
	for _, request := range r.readers.ofKind(kind) {
		r.queue.Add(request)
	}
}

func (r *Reconciler) ofObject(_ context.Context, object client.Object) []reconcile.Request {
	return r.readers.requests(input{object.GetObjectKind().GroupVersionKind().GroupKind(), client.ObjectKeyFromObject(object)})
}
