package controller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/annotations"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/store"
)

// Reconcile brings one config closer to its data. Errors are faults, which are repeated. What only waits, or has to change, is
// a condition.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (result ctrl.Result, err error) {
	turn := r.turns.begin(request)
	if turn == nil {
		return ctrl.Result{}, nil
	}
	defer func() {
		if next, parked := turn.end(); parked {
			r.queue.Add(next)
		}
	}()
	config := &bootstrap.MachineBootstrapConfig{}
	if err := r.Client.Get(ctx, request.NamespacedName, config); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(r.readers.begin(request.NamespacedName))
			r.looks.drop(request.NamespacedName)
			return r.bury(ctx, request.NamespacedName)
		}
		return ctrl.Result{}, ignoreNotFound("get MachineBootstrapConfig", err)
	}
	// Events of Machines and Clusters lead here, too, whatever label their config has.
	if !config.DeletionTimestamp.IsZero() || r.WatchFilter != "" && config.Labels[clusterv1.WatchLabel] != r.WatchFilter {
		return ctrl.Result{}, nil
	}
	if err := turn.waitFor(ctx, config); err != nil {
		return ctrl.Result{}, err
	}
	before := config.DeepCopy()
	owner, err := findOwner(ctx, r.Client, config)
	if err != nil {
		return ctrl.Result{}, err
	}
	name := config.Labels[clusterv1.ClusterNameLabel]
	if owner != nil {
		name = owner.cluster
	}
	defer r.forget(r.readers.begin(request.NamespacedName))
	r.readers.add(request.NamespacedName, input{
		schema.GroupKind{Group: clusterv1.GroupVersion.Group, Kind: "Cluster"}, client.ObjectKey{Namespace: config.Namespace, Name: name},
	})
	cluster, err := r.cluster(ctx, client.ObjectKey{Namespace: config.Namespace, Name: name})
	if err != nil {
		return ctrl.Result{}, err
	}
	if pause(config, cluster) {
		return ctrl.Result{}, r.save(ctx, before, config)
	}
	var failed error
	switch {
	case owner == nil:
		failed = waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForOwner, "no Machine or MachinePool refers to the config")
	case cluster == nil:
		failed = waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonObjectNotFound,
			"Cluster %s does not exist in namespace %s", name, config.Namespace)
	default:
		result, failed = r.reconcile(ctx, turn, config, owner, cluster)
	}
	r.conclude(config, failed)
	if err := turn.waitFor(ctx, config); err != nil {
		return ctrl.Result{}, errors.Join(failed, err)
	}
	if s := asStop(failed); s != nil {
		result.RequeueAfter, failed = s.again, nil
	}
	return result, errors.Join(failed, r.save(ctx, before, config))
}

// pause says whether the config or its Cluster is paused. Cluster API's function would write the condition in a request of its own and without
// a lock: a reconciliation that begins with a state of the cache from before writes it, and announces it, once more.
func pause(config *bootstrap.MachineBootstrapConfig, cluster *clusterv1.Cluster) bool {
	var reasons []string
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) {
		reasons = append(reasons, "Cluster spec.paused is set to true")
	}
	if annotations.HasPaused(config) {
		reasons = append(reasons, bootstrap.KindMachineBootstrapConfig+" has the annotation "+clusterv1.PausedAnnotation)
	}
	if len(reasons) > 0 {
		mark(config, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason, strings.Join(reasons, ", "))
		return true
	}
	mark(config, clusterv1.PausedCondition, metav1.ConditionFalse, clusterv1.NotPausedReason, "")
	return false
}

// cluster returns nil if there is no such Cluster, such as one with a name that no object can have. One that the cache does not have yet may be paused.
func (r *Reconciler) cluster(ctx context.Context, key client.ObjectKey) (*clusterv1.Cluster, error) {
	if len(validation.IsDNS1123Subdomain(key.Name)) > 0 {
		return nil, nil //nolint:nilnil // a config without a label is no error
	}
	var found clusterv1.Cluster
	err := r.Client.Get(ctx, key, &found)
	if apierrors.IsNotFound(err) {
		err = r.Live.Get(ctx, key, &found)
	}
	if err != nil {
		return nil, ignoreNotFound("get Cluster "+key.Name, err)
	}
	return &found, nil
}

// reconcile marks the conditions that it reaches. Its error becomes the message of the condition at which it ends.
func (r *Reconciler) reconcile(ctx context.Context, turn *turn, config *bootstrap.MachineBootstrapConfig, o *owner, cluster *clusterv1.Cluster) (
	ctrl.Result, error,
) {
	r.readers.add(client.ObjectKeyFromObject(config), input{schema.GroupKind{Kind: "Secret"}, keyOf(cluster)})
	key, err := r.clusterKey(ctx, cluster)
	if err != nil {
		return ctrl.Result{}, err
	}
	w := &work{
		r: r, config: config, owner: o, cluster: cluster, key: key,
		reading: &reading{
			r: r, config: config, cluster: cluster, inputs: newInputs(key), bodies: map[input]body{}, left: map[input]struct{}{}, turn: turn,
		},
	}
	data, err := w.data(ctx)
	if err != nil {
		return ctrl.Result{}, err
	}
	if data != nil && orphaned(data) {
		w.none()
		return w.farewell(ctx, data)
	}
	if data == nil && o.data != "" && o.joined {
		// The machine has its data, and no other machine comes for it.
		w.available(o.data)
		return ctrl.Result{}, nil
	}
	if data != nil {
		if store.ReadTerms(data.Annotations).Pending() {
			return w.resume(ctx, data)
		}
		return w.keep(ctx, data)
	}
	// Without its Secret it is made again, with the same token.
	w.none()
	if !o.object.GetDeletionTimestamp().IsZero() {
		return ctrl.Result{}, waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForOwner,
			"%s %s is being deleted: it gets no data", o.kind, o.object.GetName())
	}
	return w.make(ctx)
}

// bury removes the object of a config that is gone.
func (r *Reconciler) bury(ctx context.Context, config client.ObjectKey) (ctrl.Result, error) {
	data, err := r.metadata(ctx, "Secret", client.ObjectKey{Namespace: config.Namespace, Name: dataName(config.Name)})
	if err != nil || data == nil || !orphaned(data) || r.WatchFilter != "" && data.Labels[clusterv1.WatchLabel] != r.WatchFilter {
		r.paces.drop(config)
		return ctrl.Result{}, err
	}
	cluster, err := r.cluster(ctx, client.ObjectKey{Namespace: config.Namespace, Name: data.Labels[clusterv1.ClusterNameLabel]})
	if err != nil {
		return ctrl.Result{}, err
	}
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) { // clusterctl may be moving it
		return ctrl.Result{RequeueAfter: 10 * time.Second}, nil
	}
	gone := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: config.Namespace, Name: config.Name}}
	if owner := metav1.GetControllerOf(data); owner != nil {
		gone.UID = owner.UID
	}
	defer r.forget(r.readers.begin(config))
	w := &work{r: r, config: gone, reading: &reading{r: r, config: gone, inputs: newInputs(nil), bodies: map[input]body{}, left: map[input]struct{}{}}}
	return w.farewell(ctx, data)
}

// forget drops what is remembered of objects that no config reads any more.
func (r *Reconciler) forget(before []input) {
	for _, of := range before {
		if !r.readers.read(of) {
			r.digests.drop(of)
			r.keys.drop(of.ObjectKey)
		}
	}
}

// save writes what a reconciliation has changed in the status, in one request. A conflict says that the reconciliation began with
// an older state than that of the one before: it would announce the same transitions again. The event of the newer state starts the
// next one.
func (r *Reconciler) save(ctx context.Context, before, config *bootstrap.MachineBootstrapConfig) error {
	config.Status.ObservedGeneration = config.Generation
	if equality.Semantic.DeepEqual(before.Status, config.Status) {
		return nil
	}
	err := r.write(ctx, r.Client, before, config)
	if apierrors.IsConflict(err) {
		return nil
	}
	return ignoreNotFound("write the status", err)
}

// write replaces a status that nothing else has changed meanwhile, and announces its transitions.
func (r *Reconciler) write(ctx context.Context, c client.Client, before, config *bootstrap.MachineBootstrapConfig) error {
	patch, err := statusPatch(before, config)
	if err != nil {
		return err
	}
	if err := c.Status().Patch(ctx, config, patch); err != nil {
		return err //nolint:wrapcheck // the caller says what it is for
	}
	was, is := before.Status.Conditions, config.Status.Conditions
	transition(r.metrics.transitions, find(was, bootstrap.ConditionReady), find(is, bootstrap.ConditionReady))
	transition(r.metrics.outcomes, find(was, bootstrap.ConditionBootstrapSucceeded), find(is, bootstrap.ConditionBootstrapSucceeded))
	for i := range is {
		r.announce(config, find(was, is[i].Type), &is[i])
	}
	return nil
}

// statusPatch is the difference of two statuses, with the version of the first. That of whole objects would encode them, too.
func statusPatch(before, after *bootstrap.MachineBootstrapConfig) (client.Patch, error) {
	patch, err := client.MergeFrom(&bootstrap.MachineBootstrapConfig{Status: before.Status}).Data(&bootstrap.MachineBootstrapConfig{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: before.ResourceVersion}, Status: after.Status,
	})
	if err != nil {
		return nil, fmt.Errorf("encode the status: %w", err)
	}
	return client.RawPatch(types.MergePatchType, patch), nil
}

func find(conditions []metav1.Condition, kind string) *metav1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}
