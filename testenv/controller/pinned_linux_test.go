package controller

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// pinned: a manager that starts with the objects of one before writes to none of them: their inputs are up to date.
func (r *rig) pinned(t *testing.T) {
	r.cluster(t, "pinned")
	r.manager.Stop(t)
	text, err := os.ReadFile("testdata/pinned.yaml")
	require.NoError(t, err)
	objects, err := management.Objects(text)
	require.NoError(t, err)
	cluster := made(clusterv1.GroupVersion.String(), "Cluster", "pinned", map[string]any{})
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "pinned"}, cluster))
	owners := map[string]*unstructured.Unstructured{"Cluster": cluster}
	for _, o := range objects {
		// The config belongs to the Machine, its data to the config, and all others to the Cluster.
		by := owners["Cluster"]
		switch {
		case o.GetKind() == bootstrap.KindMachineBootstrapConfig:
			by = owners["Machine"]
		case o.GetKind() == "Secret" && o.GetName() == "pinned":
			by = owners[bootstrap.KindMachineBootstrapConfig]
		}
		reference := metav1.OwnerReference{APIVersion: by.GetAPIVersion(), Kind: by.GetKind(), Name: by.GetName(), UID: by.GetUID()}
		if by.GetKind() == bootstrap.KindMachineBootstrapConfig {
			reference.Controller, reference.BlockOwnerDeletion = ptr.To(true), ptr.To(true)
		}
		o.SetOwnerReferences([]metav1.OwnerReference{reference})
		r.put(t, o)
		owners[o.GetKind()] = o
	}
	for _, o := range objects {
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	}
	r.run(t, inputsFlags()...)
	// The config that is made now is reconciled after those that were there.
	require.NoError(t, r.Create(t.Context(), config("after-pinned")))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine or MachinePool", "after-pinned")
	r.condition(t, bootstrap.ConditionInputsUpToDate, "True", "", "pinned")
	for _, o := range objects {
		before := o.GetResourceVersion()
		require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		require.Equal(t, before, o.GetResourceVersion(), "%s %s", o.GetKind(), o.GetName())
	}
}
