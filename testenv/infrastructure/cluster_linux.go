package infrastructure

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// reconcileCluster gives a NodeCluster its endpoint.
func (p *Provider) reconcileCluster(_ context.Context, o *unstructured.Unstructured) (ctrl.Result, error) {
	owner := ownerOf(o, "Cluster")
	if owner == nil {
		return ctrl.Result{}, nil
	}
	if o.GetDeletionTimestamp() != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		if x := p.proxies[*owner]; x != nil {
			x.close()
			delete(p.proxies, *owner)
		}
		controllerutil.RemoveFinalizer(o, finalizer)
		return ctrl.Result{}, nil
	}
	controllerutil.AddFinalizer(o, finalizer)
	x, err := p.proxyOf(*owner)
	if err != nil {
		return ctrl.Result{}, err
	}
	at := x.address()
	return ctrl.Result{}, errors.Join(
		unstructured.SetNestedField(o.Object, at.Addr().String(), "spec", "controlPlaneEndpoint", "host"),
		unstructured.SetNestedField(o.Object, int64(at.Port()), "spec", "controlPlaneEndpoint", "port"),
		provisioned(o),
	)
}

// proxyOf returns the proxy of a Cluster, which listens from the first call on.
func (p *Provider) proxyOf(of client.ObjectKey) (*proxy, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proxies[of] == nil {
		x, err := listen(p.t.Context(), p.address)
		if err != nil {
			return nil, err
		}
		p.proxies[of] = x
	}
	return p.proxies[of], nil
}

// ownerOf returns the owner of a kind of Cluster API, which the core provider sets when it finds the object.
func ownerOf(o *unstructured.Unstructured, kind string) *client.ObjectKey {
	for _, r := range o.GetOwnerReferences() {
		if r.Kind == kind {
			return &client.ObjectKey{Namespace: o.GetNamespace(), Name: r.Name}
		}
	}
	return nil
}
