package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// owner is what a config needs of its Machine or MachinePool.
type owner struct {
	object       client.Object
	kind         string
	cluster      string
	version      string
	controlPlane bool
	// joined says that the machine, or every machine of the pool, has a node, or goes away.
	joined bool
	// data is the name of the Secret that the owner already has.
	data string
	// config is what the owner refers to.
	config clusterv1.ContractVersionedObjectReference
}

// refersTo says whether the owner refers to the config: the author of a config also writes its owner references.
func (o *owner) refersTo(config metav1.Object) bool {
	return o.config.APIGroup == bootstrap.Group && o.config.Kind == bootstrap.KindMachineBootstrapConfig && o.config.Name == config.GetName()
}

// pool says whether further machines come with the same data.
func (o *owner) pool() bool { return o.kind == "MachinePool" }

// groupOf is the API group of an owner, empty if it has none.
func groupOf(ref metav1.OwnerReference) string {
	gv, _ := schema.ParseGroupVersion(ref.APIVersion) // what cannot be read is of no group
	return gv.Group
}

// findOwner returns the Machine or MachinePool that controls the config and refers to it, nil if there is none yet. The author
// of the config writes its owner references: neither a name nor a reference alone suffices.
func findOwner(ctx context.Context, c client.Reader, config metav1.Object) (*owner, error) {
	ref := metav1.GetControllerOf(config)
	if ref == nil {
		return nil, nil //nolint:nilnil // no owner is no error
	}
	if groupOf(*ref) != clusterv1.GroupVersion.Group {
		return nil, nil //nolint:nilnil // likewise
	}
	key := client.ObjectKey{Namespace: config.GetNamespace(), Name: ref.Name}
	var found *owner
	var err error
	switch ref.Kind {
	case "Machine":
		found, err = machineOwner(ctx, c, key)
	case "MachinePool":
		found, err = poolOwner(ctx, c, key)
	}
	if err != nil || found == nil || found.object.GetUID() != ref.UID || !found.refersTo(config) {
		return nil, err
	}
	return found, nil
}

func machineOwner(ctx context.Context, c client.Reader, key client.ObjectKey) (*owner, error) {
	var m clusterv1.Machine
	if err := c.Get(ctx, key, &m); err != nil {
		return nil, ignoreNotFound("get Machine "+key.String(), err)
	}
	config := m.Spec.Bootstrap.ConfigRef
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return &owner{
		object: &m, kind: "Machine", config: config, cluster: m.Spec.ClusterName, version: m.Spec.Version, controlPlane: controlPlane,
		joined: m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero(), data: deref(m.Spec.Bootstrap.DataSecretName),
	}, nil
}

func poolOwner(ctx context.Context, c client.Reader, key client.ObjectKey) (*owner, error) {
	var p clusterv1.MachinePool
	if err := c.Get(ctx, key, &p); err != nil {
		return nil, ignoreNotFound("get MachinePool "+key.String(), err)
	}
	return &owner{
		object: &p, kind: "MachinePool", config: p.Spec.Template.Spec.Bootstrap.ConfigRef, cluster: p.Spec.ClusterName, version: p.Spec.Template.Spec.Version,
		joined: !p.DeletionTimestamp.IsZero(), data: deref(p.Spec.Template.Spec.Bootstrap.DataSecretName),
	}, nil
}

func ignoreNotFound(what string, err error) error {
	if err == nil || apierrors.IsNotFound(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
