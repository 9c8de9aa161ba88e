package controller

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// The lock is the ConfigMap that the kubeadm bootstrap provider of Cluster API takes, so that of two providers one initializes
// a control plane.
const lockKey, lockSuffix = "lock-information", "-lock"

type lockHolder struct {
	MachineName string `json:"machineName"`
}

func lockName(cluster *clusterv1.Cluster) string { return cluster.Name + lockSuffix }

// lock returns nil if the machine is the one that initializes the control plane.
func (r *Reconciler) lock(ctx context.Context, cluster *clusterv1.Cluster, machine string) error {
	holder, err := json.Marshal(lockHolder{MachineName: machine})
	if err != nil {
		return fmt.Errorf("encode the init lock: %w", err)
	}
	created := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: lockName(cluster),
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{clusterOwner(cluster)},
		},
		Data: map[string]string{lockKey: string(holder)},
	}
	err = r.Client.Create(ctx, created)
	if err == nil {
		return r.first(ctx, cluster)
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("take the init lock: %w", err)
	}
	var found corev1.ConfigMap
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(created), &found); apierrors.IsNotFound(err) {
		return r.lock(ctx, cluster, machine) // it was freed meanwhile
	} else if err != nil {
		return fmt.Errorf("read the init lock: %w", err)
	}
	var other lockHolder
	if err := json.Unmarshal([]byte(found.Data[lockKey]), &other); err != nil {
		return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForInitLock,
			"ConfigMap %s has no readable %s: delete it if no Machine initializes the control plane", found.Name, lockKey)
	}
	if other.MachineName == machine {
		return r.first(ctx, cluster)
	}
	gone, err := r.gone(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: other.MachineName})
	if err != nil {
		return err
	}
	if !gone {
		return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForInitLock,
			"Machine %s initializes the control plane", other.MachineName)
	}
	// With its resource version, so that the lock of another Machine that came first stays.
	if err := r.Client.Delete(ctx, &found, client.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion}); err != nil {
		return ignoreNotFound("free the init lock of a Machine that is gone", err)
	}
	return r.lock(ctx, cluster, machine)
}

// first makes sure that the control plane was not initialized a moment ago, which the cache may not have yet. It frees the lock
// of a Machine that has done so.
func (r *Reconciler) first(ctx context.Context, cluster *clusterv1.Cluster) error {
	var now clusterv1.Cluster
	if err := r.Live.Get(ctx, client.ObjectKeyFromObject(cluster), &now); err != nil {
		return fmt.Errorf("get Cluster %s: %w", cluster.Name, err)
	}
	if !Initialized(&now) {
		return nil
	}
	if err := r.unlock(ctx, cluster); err != nil {
		return err
	}
	return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonWaitingForControlPlane, "the control plane was just initialized")
}

// Initialized says whether the control plane of a cluster is there. Before that there is nothing to connect to, and a connection
// that fails is not tried again for 30 s.
func Initialized(cluster *clusterv1.Cluster) bool {
	return conditions.IsTrue(cluster, clusterv1.ClusterControlPlaneInitializedCondition)
}

// gone says whether a Machine does not exist, or is about to.
func (r *Reconciler) gone(ctx context.Context, key client.ObjectKey) (bool, error) {
	var m clusterv1.Machine
	err := r.Live.Get(ctx, key, &m)
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get the Machine that has the init lock: %w", err)
	}
	return !m.DeletionTimestamp.IsZero(), nil
}

// unlock frees the lock of the machine that has initialized the control plane.
func (r *Reconciler) unlock(ctx context.Context, cluster *clusterv1.Cluster) error {
	lock := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: lockName(cluster)}}
	return ignoreNotFound("free the init lock", r.Client.Delete(ctx, lock))
}

// clusterOwner makes an object part of its cluster: it goes with it, and moves with it.
func clusterOwner(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: cluster.Name, UID: cluster.UID,
	}
}
