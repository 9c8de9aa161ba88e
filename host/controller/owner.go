package controller

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
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
}

// pool says whether further machines come with the same data.
func (o *owner) pool() bool { return o.kind == "MachinePool" }

// findOwner returns nil if nothing owns the config yet.
func findOwner(ctx context.Context, c client.Reader, config metav1.Object) (*owner, error) {
	for _, ref := range config.GetOwnerReferences() {
		gv, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || gv.Group != clusterv1.GroupVersion.Group {
			continue
		}
		key := client.ObjectKey{Namespace: config.GetNamespace(), Name: ref.Name}
		switch ref.Kind {
		case "Machine":
			return machineOwner(ctx, c, key)
		case "MachinePool":
			return poolOwner(ctx, c, key)
		}
	}
	return nil, nil //nolint:nilnil // no owner is no error
}

func machineOwner(ctx context.Context, c client.Reader, key client.ObjectKey) (*owner, error) {
	var m clusterv1.Machine
	if err := c.Get(ctx, key, &m); err != nil {
		return nil, ignoreNotFound("get Machine "+key.String(), err)
	}
	_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
	return &owner{
		object: &m, kind: "Machine", cluster: m.Spec.ClusterName, version: m.Spec.Version, controlPlane: controlPlane,
		joined: m.Status.NodeRef.IsDefined() || !m.DeletionTimestamp.IsZero(), data: deref(m.Spec.Bootstrap.DataSecretName),
	}, nil
}

func poolOwner(ctx context.Context, c client.Reader, key client.ObjectKey) (*owner, error) {
	var p clusterv1.MachinePool
	if err := c.Get(ctx, key, &p); err != nil {
		return nil, ignoreNotFound("get MachinePool "+key.String(), err)
	}
	return &owner{
		object: &p, kind: "MachinePool", cluster: p.Spec.ClusterName, version: p.Spec.Template.Spec.Version,
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
