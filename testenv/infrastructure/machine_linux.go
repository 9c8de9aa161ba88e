package infrastructure

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// placePause is the time between two looks for a free place.
const placePause = time.Second

// machine is a node of a NodeMachine.
type machine struct {
	name  string
	place string
	node  *nodes.Node
	proxy *proxy // of its cluster, for a control plane
	// settled is closed when its boot has ended, during which it is started again when it reboots itself.
	settled chan struct{}
}

// Node returns the node of a NodeMachine, or nil before it is on.
func (p *Provider) Node(name string) *nodes.Node {
	if m := p.named(name); m != nil {
		return m.node
	}
	return nil
}

// named returns the machine of a NodeMachine, or nil before it is on.
func (p *Provider) named(name string) *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.machines {
		if m.name == name && m.node != nil {
			return m
		}
	}
	return nil
}

// Machines returns the number of machines that hold a place.
func (p *Provider) Machines() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.machines)
}

// reconcileMachine boots the node of a NodeMachine when the data is there.
func (p *Provider) reconcileMachine(ctx context.Context, o *unstructured.Unstructured) (ctrl.Result, error) {
	if o.GetDeletionTimestamp() != nil {
		err := p.remove(ctx, o.GetUID())
		if err == nil {
			controllerutil.RemoveFinalizer(o, finalizer)
		}
		return ctrl.Result{}, err
	}
	if controllerutil.AddFinalizer(o, finalizer) {
		return ctrl.Result{}, nil // the change of the object calls again
	}
	owner := ownerOf(o, "Machine")
	if owner == nil {
		return ctrl.Result{}, nil
	}
	var of clusterv1.Machine
	if err := p.k.Get(ctx, *owner, &of); err != nil || of.Spec.Bootstrap.DataSecretName == nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	p.mu.Lock()
	m := p.machines[o.GetUID()]
	p.mu.Unlock()
	if m == nil {
		var err error
		if m, err = p.boot(ctx, o, &of); m == nil {
			return ctrl.Result{RequeueAfter: placePause}, err
		}
	}
	addresses := []any{
		map[string]any{"type": "InternalIP", "address": p.network.Address(m.place).String()},
		map[string]any{"type": "Hostname", "address": m.name},
	}
	return ctrl.Result{}, errors.Join(
		unstructured.SetNestedField(o.Object, Prefix+m.name, "spec", "providerID"),
		unstructured.SetNestedSlice(o.Object, addresses, "status", "addresses"),
		provisioned(o),
	)
}

// boot boots a node with the data of a Machine, if a place is free.
func (p *Provider) boot(ctx context.Context, o *unstructured.Unstructured, of *clusterv1.Machine) (*machine, error) {
	var data corev1.Secret
	if err := p.k.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: *of.Spec.Bootstrap.DataSecretName}, &data); err != nil {
		return nil, err
	}
	m := &machine{name: o.GetName()}
	value, layers := string(data.Data["value"]), []nodes.Layer(nil)
	seed := nodes.NoCloud(value, "instance-id: "+m.name+"\nlocal-hostname: "+m.name+"\n")
	switch format := string(data.Data["format"]); format {
	case "cloud-config":
	case "ignition":
		seed, layers = nodes.InOrder(ignite(p.t.Context(), value, m.name), nodes.CountEgress(p.network)), Immutable().Layers
	default:
		return nil, reconcile.TerminalError(fmt.Errorf("the nodes read cloud-config and Ignition; the Secret %s has %q", data.Name, format))
	}
	_, controlPlane := of.Labels[clusterv1.MachineControlPlaneLabel]
	if controlPlane {
		var err error
		if m.proxy, err = p.proxyOf(client.ObjectKey{Namespace: of.Namespace, Name: of.Spec.ClusterName}); err != nil {
			return nil, err
		}
	}
	if !p.take(o.GetUID(), m) {
		return nil, nil
	}
	options := p.options(m.place, of.Spec.Version, controlPlane, seed)
	if layers != nil {
		options.Layers = layers
	}
	if image, _, _ := unstructured.NestedString(o.Object, "spec", "image"); image != "" {
		options.Prepare = nodes.InOrder(options.Prepare, p.images[image])
	}
	options.NoWait = true
	booted := make(chan *nodes.Node)
	go func() { // a failure ends it, and the test
		defer close(booted)
		booted <- nodes.Boot(p.t, options)
	}()
	node, ok := <-booted
	if !ok {
		p.free(o.GetUID(), m)
		return nil, reconcile.TerminalError(fmt.Errorf("%s does not boot", m.name))
	}
	p.mu.Lock()
	m.node, m.settled = node, make(chan struct{})
	p.mu.Unlock()
	p.settle(ctx, m)
	if m.proxy != nil {
		m.proxy.add(p.network.Address(m.place))
	}
	return m, nil
}

// take gives a machine a place.
func (p *Provider) take(uid types.UID, m *machine) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.places) == 0 {
		return false
	}
	m.place, p.places = p.places[0], p.places[1:]
	p.machines[uid] = m
	return true
}

// free takes the place of a machine back.
func (p *Provider) free(uid types.UID, m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.machines, uid)
	p.places = append(p.places, m.place)
}

// settle starts a machine again that reboots itself while it boots.
func (p *Provider) settle(ctx context.Context, m *machine) {
	p.t.Logf("%s is on as %s", m.name, m.place)
	settled := m.settled
	p.running.Go(func() {
		defer close(settled)
		err := m.node.Settle(ctx)
		p.t.Logf("%s ends its boot: %v", m.name, err)
	})
}

// PowerCut cuts the power of a machine, and turns it on again.
func (p *Provider) PowerCut(t testing.TB, name string) {
	t.Helper()
	m := p.named(name)
	m.node.Crash()
	<-m.settled
	if err := m.node.Reboot(t.Context()); err != nil {
		t.Fatalf("turn %s on again: %v", name, err)
	}
	m.settled = make(chan struct{})
	p.settle(t.Context(), m)
}

// Reboot presses the button of a machine that reboots it, after its boot.
func (p *Provider) Reboot(t testing.TB, name string) {
	t.Helper()
	m := p.named(name)
	<-m.settled
	if err := m.node.Reboot(t.Context()); err != nil {
		t.Fatalf("reboot %s: %v", name, err)
	}
	m.settled = make(chan struct{})
	p.settle(t.Context(), m)
}

// remove is the end of a machine.
func (p *Provider) remove(ctx context.Context, uid types.UID) error {
	p.mu.Lock()
	m := p.machines[uid]
	p.mu.Unlock()
	if m == nil {
		return nil
	}
	if m.proxy != nil {
		m.proxy.remove(p.network.Address(m.place))
	}
	m.node.Crash()
	if err := m.node.Stop(ctx); err != nil {
		return err
	}
	p.free(uid, m)
	return nil
}
