package infrastructure

import (
	"context"
	_ "embed"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// CRDs are the resources of the provider.
//
//go:embed crds.yaml
var CRDs []byte

const (
	// Prefix is the first part of a provider ID; the name of the NodeMachine is the rest.
	Prefix = "testenv:///"

	finalizer   = "infrastructure.cluster.x-k8s.io/testenv"
	kindCluster = "NodeCluster"
	kindMachine = "NodeMachine"
)

// Provider reconciles the resources.
type Provider struct {
	t       testing.TB
	k       client.Client
	options func(place, version string, controlPlane bool, seed func(root string) error) nodes.Options
	network *nodes.Network
	address netip.Addr // of the test in the network
	running sync.WaitGroup

	mu       sync.Mutex
	places   []string                           // names of the network that no machine has
	images   map[string]func(root string) error // what differs in an image from that of other machines, by spec.image
	machines map[types.UID]*machine
	proxies  map[client.ObjectKey]*proxy // by the Cluster
}

// Start runs the provider until the test ends. Its machines have the places, which are names of the network; options has the options of a
// machine. The endpoints of all clusters have the address.
func Start(
	t testing.TB, c *management.Cluster, network *nodes.Network, address netip.Addr, places []string, images map[string]func(root string) error,
	options func(place, version string, controlPlane bool, seed func(root string) error) nodes.Options,
) *Provider {
	t.Helper()
	p := &Provider{
		t: t, k: c.Client(t, clusterv1.AddToScheme), options: options, network: network, address: address, places: places, images: images,
		machines: map[types.UID]*machine{}, proxies: map[client.ObjectKey]*proxy{},
	}
	c.Install(t, CRDs)
	same := true
	m, err := ctrl.NewManager(c.Config, ctrl.Options{
		Scheme: p.k.Scheme(), Metrics: server.Options{BindAddress: "0"}, Logger: logr.Discard(),
		Controller: config.Controller{SkipNameValidation: &same},
	})
	if err == nil {
		err = errors.Join(p.watch(m, kindCluster, p.reconcileCluster), p.watch(m, kindMachine, p.reconcileMachine))
	}
	if err != nil {
		t.Fatalf("infrastructure provider: %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	p.running.Go(func() {
		if err := m.Start(ctx); err != nil {
			t.Errorf("infrastructure provider: %v", err)
		}
	})
	t.Cleanup(func() {
		stop()
		p.running.Wait()
		for _, proxy := range p.proxies {
			proxy.close()
		}
	})
	return p
}

// watch adds the controller of a kind. What a NodeMachine waits for changes with its Machine, which has the same name unless a template
// made it: the reference of the Machine counts.
func (p *Provider) watch(m ctrl.Manager, kind string, reconcile func(context.Context, *unstructured.Unstructured) (ctrl.Result, error)) error {
	b := ctrl.NewControllerManagedBy(m).For(object(kind)).
		WithOptions(controller.Options{MaxConcurrentReconciles: len(p.places) + 1})
	if kind == kindMachine {
		b = b.Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []ctrl.Request {
			of, _ := o.(*clusterv1.Machine)
			return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: of.Namespace, Name: of.Spec.InfrastructureRef.Name}}}
		}))
	}
	return b.Complete(p.reconciler(kind, reconcile))
}

// reconciler reads an object, has it reconciled, and writes what has changed in it.
func (p *Provider) reconciler(kind string, with func(context.Context, *unstructured.Unstructured) (ctrl.Result, error)) reconcile.Func {
	return func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		o := object(kind)
		if err := p.k.Get(ctx, request.NamespacedName, o); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		before := o.DeepCopy()
		result, err := with(ctx, o)
		// The spec has the provider ID, which must be there when the status says that the machine is provisioned.
		err = errors.Join(err,
			client.IgnoreNotFound(p.k.Patch(ctx, o.DeepCopy(), client.MergeFrom(before))),
			client.IgnoreNotFound(p.k.Status().Patch(ctx, o, client.MergeFrom(before))))
		if err != nil && ctx.Err() == nil {
			p.t.Logf("%s %s: %v", kind, o.GetName(), err)
		}
		return result, err
	}
}

func object(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: clusterv1.GroupVersionInfrastructure.Group, Version: "v1alpha1", Kind: kind})
	return o
}

// provisioned completes the status, once.
func provisioned(o *unstructured.Unstructured) error {
	if done, _, err := unstructured.NestedBool(o.Object, "status", "initialization", "provisioned"); done || err != nil {
		return err
	}
	ready := map[string]any{
		"type": "Ready", "status": "True", "reason": "Provisioned", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		"observedGeneration": o.GetGeneration(),
	}
	return errors.Join(
		unstructured.SetNestedField(o.Object, true, "status", "initialization", "provisioned"),
		unstructured.SetNestedSlice(o.Object, []any{ready}, "status", "conditions"),
	)
}
