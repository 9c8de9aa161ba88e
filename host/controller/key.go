package controller

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/token"
)

// KeyType is the type of a Secret with the key of a cluster. A type never changes.
const KeyType = corev1.SecretType("machineadm.cluster.x-k8s.io/cluster-key")

// keyOf names the Secret with the key of a cluster.
func keyOf(cluster *clusterv1.Cluster) client.ObjectKey {
	return client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.Name + "-machineadm"}
}

// clusterKey is the key of a cluster, from which its bootstrap tokens and the digests of its inputs are derived. It is in a
// Secret of the cluster, so that it moves with it.
func (r *Reconciler) clusterKey(ctx context.Context, cluster *clusterv1.Cluster) ([]byte, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: cluster.Namespace, Name: keyOf(cluster).Name,
			Labels:          map[string]string{clusterv1.ClusterNameLabel: cluster.Name},
			OwnerReferences: []metav1.OwnerReference{clusterOwner(cluster)},
		},
		Type: KeyType, Immutable: ptr.To(true),
	}
	id := keyOf(cluster)
	known, err := r.metadata(ctx, "Secret", id)
	if err != nil {
		return nil, err
	}
	if known != nil {
		if key := r.keys.get(id, known.ResourceVersion); key != nil {
			return key, r.own(ctx, known, clusterOwner(cluster))
		}
	}
	err = r.Live.Get(ctx, id, secret)
	if apierrors.IsNotFound(err) {
		key := make([]byte, token.KeyBytes)
		_, _ = rand.Read(key) // it never fails
		secret.Data = map[string][]byte{"value": key}
		if err = r.Client.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
			err = r.Live.Get(ctx, id, secret) // another config of the cluster has made it meanwhile
		}
	}
	if err != nil {
		return nil, fmt.Errorf("get the key of Cluster %s: %w", cluster.Name, err)
	}
	if secret.Type != KeyType {
		// Another program may have written it for a user who may not write Secrets: the type is what such a program does not set.
		return nil, invalid(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonKeyNotFound,
			"Secret %s is not of type %s: delete it", secret.Name, KeyType)
	}
	key := secret.Data["value"]
	if len(key) != token.KeyBytes {
		return nil, invalid(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonKeyNotFound,
			"Secret %s has no key value of %d bytes: delete it if no machine of the cluster is being made", secret.Name, token.KeyBytes)
	}
	r.keys.put(id, secret.ResourceVersion, key)
	if known == nil {
		return key, nil
	}
	return key, r.own(ctx, known, clusterOwner(cluster))
}
