package controller

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/predicates"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	ctrlsource "sigs.k8s.io/controller-runtime/pkg/source"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=machinebootstrapconfigs;machinebootstrapstorages,verbs=list;watch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=machinebootstrapconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.cluster.x-k8s.io,resources=machinebootstrapdataclaims,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups=machineadm.cluster.x-k8s.io,resources=containerruntimes;domainjoins;kubernetesnodes;sysctls;timesyncs,verbs=list;watch;patch
// +kubebuilder:rbac:groups=machineadm.cluster.x-k8s.io,resources=containerruntimetemplates;domainjointemplates,verbs=list;watch;patch
// +kubebuilder:rbac:groups=machineadm.cluster.x-k8s.io,resources=kubernetesnodetemplates;sysctltemplates;timesynctemplates,verbs=list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinepools,verbs=list;watch
// +kubebuilder:rbac:groups=controlplane.cluster.x-k8s.io,resources=*,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;patch
// +kubebuilder:rbac:groups="",resources=configmaps,verbs=get;list;watch;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// SetupWithManager makes the manager run the reconciler. What a config refers to is watched when a config first refers to it.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr manager.Manager, options controller.Options) error {
	r.readers, r.keys, r.digests = newReaders(), newKeys(), newDigests()
	r.turns = newTurns(options.MaxConcurrentReconciles)
	if r.Now == nil {
		r.Now = time.Now
	}
	var err error
	if r.metrics, err = newMetrics(r.Metrics); err != nil {
		return err
	}
	hostname, _ := os.Hostname() // an event does without it
	r.events = newRecorder(mgr.GetClient(), r.metrics, hostname)
	if err := mgr.Add(r.events); err != nil {
		return fmt.Errorf("add the writers of events: %w", err)
	}
	log := ctrl.LoggerFrom(ctx)
	changes := predicates.ResourceIsChanged(mgr.GetScheme(), log)
	c, err := ctrl.NewControllerManagedBy(mgr).Named("machinebootstrapconfig").
		For(&bootstrap.MachineBootstrapConfig{}, builder.WithPredicates(predicates.ResourceHasFilterLabel(mgr.GetScheme(), log, r.WatchFilter))).
		WithOptions(options).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine), builder.WithPredicates(changes)).
		Watches(&clusterv1.MachinePool{}, handler.EnqueueRequestsFromMapFunc(ofPool), builder.WithPredicates(changes)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.reads(clusterv1.GroupVersion.Group, "Cluster")), builder.WithPredicates(changes)).
		Watches(&bootstrap.MachineBootstrapDataClaim{}, &handler.EnqueueRequestForObject{}, builder.WithPredicates(changes)).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret), builder.WithPredicates(changes)).
		WatchesMetadata(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.reads("", "ConfigMap")), builder.WithPredicates(changes)).
		WatchesMetadata(&apiextensionsv1.CustomResourceDefinition{}, handler.Funcs{
			CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { r.define(e.Object, q) },
			UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { r.define(e.ObjectNew, q) },
		}, builder.WithPredicates(changes)).
		WatchesRawSource(r.Workload.GetClusterSource("machinebootstrapconfig", r.reads(clusterv1.GroupVersion.Group, "Cluster"))).
		WatchesRawSource(ctrlsource.Func(func(ctx context.Context, q queue) error {
			r.queue, r.unlisted = q, unlisted{kinds: map[schema.GroupKind]struct{}{}, stop: ctx.Done()}
			return nil
		})).
		Build(r)
	if err != nil {
		return fmt.Errorf("set up the controller of MachineBootstrapConfigs: %w", err)
	}
	r.tracker.Controller, r.tracker.Cache, r.tracker.Scheme, r.tracker.PredicateLogger = c, mgr.GetCache(), mgr.GetScheme(), &log
	return nil
}

// reads are the configs that read an object.
func (r *Reconciler) reads(group, kind string) handler.MapFunc {
	return func(_ context.Context, object client.Object) []reconcile.Request {
		return r.readers.requests(input{schema.GroupKind{Group: group, Kind: kind}, client.ObjectKeyFromObject(object)})
	}
}

// ofSecret are the configs that read a Secret. One that waits for the removal of its object may have lost its config.
func (r *Reconciler) ofSecret(ctx context.Context, object client.Object) []reconcile.Request {
	requests := r.reads("", "Secret")(ctx, object)
	if config, ok := configOfData(object.GetName()); ok && orphaned(object) {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: config}})
	}
	return requests
}

// define wakes the configs that wait for a kind of the group. Until discovery is over they ask again by themselves.
func (r *Reconciler) define(object client.Object, q queue) {
	r.defined.Store(r.Now().UnixNano())
	_, group, _ := strings.Cut(object.GetName(), ".")
	for _, request := range r.readers.waitingForGroup(group) {
		q.Add(request)
	}
}

// ofMachine is the config of a Machine. A Machine of the control plane also matters to those that wait for the init lock: it may
// have it, and its last event, that it is deleted, is like any other.
func (r *Reconciler) ofMachine(_ context.Context, object client.Object) []reconcile.Request {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	requests := ofReference(machine.Namespace, &machine.Spec.Bootstrap.ConfigRef)
	if _, controlPlane := machine.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
		lock := input{schema.GroupKind{Kind: "ConfigMap"}, client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName + lockSuffix}}
		requests = append(requests, r.readers.requests(lock)...)
	}
	return requests
}

func ofPool(_ context.Context, object client.Object) []reconcile.Request {
	pool, ok := object.(*clusterv1.MachinePool)
	if !ok {
		return nil
	}
	return ofReference(pool.Namespace, &pool.Spec.Template.Spec.Bootstrap.ConfigRef)
}

func ofReference(namespace string, ref *clusterv1.ContractVersionedObjectReference) []reconcile.Request {
	if ref.APIGroup != bootstrap.Group || ref.Kind != bootstrap.KindMachineBootstrapConfig {
		return nil
	}
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: namespace, Name: ref.Name}}}
}
