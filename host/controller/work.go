package controller

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// work is one reconciliation of a config that has an owner and a cluster.
type work struct {
	r       *Reconciler
	config  *bootstrap.MachineBootstrapConfig
	owner   *owner
	cluster *clusterv1.Cluster
	key     []byte
	reading *reading
	// storage is the spec of the config's storage, nil if it has none.
	storage *bootstrap.MachineBootstrapStorageSpec
	// stored becomes DataStored at the end, so that one that stays keeps the time of its transition.
	stored metav1.Condition
}

func (w *work) dataKey() client.ObjectKey {
	return client.ObjectKey{Namespace: w.config.Namespace, Name: dataName(w.config.Name)}
}

// data is the metadata of the Secret with the data, nil if there is none. Its changes start a reconciliation by its name.
func (w *work) data(ctx context.Context) (*metav1.PartialObjectMetadata, error) {
	found, err := w.r.metadata(ctx, "Secret", w.dataKey())
	if err != nil || found == nil {
		return nil, err
	}
	return found, w.belongs(found)
}

// belongs refuses a Secret that something else controls. A backup may have restored it without its owner, or with the UID of that before:
// keep looks at what it was made from.
func (w *work) belongs(secret metav1.Object) error {
	owner := metav1.GetControllerOf(secret)
	if owner == nil || groupOf(*owner) == bootstrap.Group && owner.Kind == bootstrap.KindMachineBootstrapConfig && owner.Name == w.config.Name {
		return nil
	}
	return w.foreign(secret)
}

func (w *work) foreign(secret metav1.Object) error {
	return invalid(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonSecretExists,
		"Secret %s belongs to something else: delete it, or give the config another name", secret.GetName())
}

// adopt decides whether a Secret with another UID of its owner, or without an owner, is that of this config. It is if the Machine refers to
// it, or if it was made from the same inputs: their digests need the key of the cluster. Otherwise it belongs to an earlier config of the
// same name, which Kubernetes is about to remove, or it has no owner and is refused.
func (w *work) adopt(data *metav1.PartialObjectMetadata, changed []string) error {
	owner := metav1.GetControllerOf(data)
	switch {
	case owner != nil && owner.UID == w.config.UID, len(changed) == 0, w.owner.data == data.Name:
		return nil
	case owner == nil:
		return w.foreign(data)
	case w.owner.pool(): // gets new data
		return nil
	}
	return waiting(bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonSecretExists,
		"Secret %s belongs to an earlier config of this name, with which Kubernetes removes it", data.Name)
}

// none marks that there is no data.
func (w *work) none() {
	w.config.Status.DataSecretName, w.config.Status.Initialization.DataSecretCreated, w.config.Status.Ready = "", nil, nil
}

// say adds a message to the condition of data that is there.
func (w *work) say(format string, args ...any) {
	mark(w.config, bootstrap.ConditionDataSecretAvailable, metav1.ConditionTrue, bootstrap.ReasonAvailable, fmt.Sprintf(format, args...))
}

// available marks that the data is there, and so all that came before it.
func (w *work) available(name string) {
	w.config.Status.DataSecretName = name
	w.config.Status.Initialization.DataSecretCreated = ptr.To(true)
	w.config.Status.Ready = ptr.To(true)
	reached(w.config, bootstrap.ConditionPluginsReady, bootstrap.ReasonReady)
	reached(w.config, bootstrap.ConditionDocumentsValid, bootstrap.ReasonValid)
	if c := conditions.Get(w.config, bootstrap.ConditionCertificatesAvailable); c == nil || c.Reason != bootstrap.ReasonNotNeeded {
		reached(w.config, bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonAvailable)
	}
	reached(w.config, bootstrap.ConditionDataSecretAvailable, bootstrap.ReasonAvailable)
}
