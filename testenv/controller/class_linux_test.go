package controller

import (
	"bytes"
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// class: variables of a ClusterClass are in the documents of its workers. Another value rolls out new machines with new data.
func (r *rig) class(t *testing.T) {
	r.apply(t, "class.yaml")
	first := r.workers(t, "classy", 1, "vm.max_map_count: \"131072\"")[0]
	r.topology(t, `[{"op":"replace","path":"/spec/topology/variables/0/value","value":"262144"}]`)
	second := r.workers(t, "classy", 1, "vm.max_map_count: \"262144\"")[0]
	require.NotEqual(t, first.Name, second.Name)
	require.NotEqual(t, first.Spec.Bootstrap.ConfigRef.Name, second.Spec.Bootstrap.ConfigRef.Name)
}

// machinePool: core takes the data of a MachinePool. The infrastructure provider of the tests makes no machines of it.
func (r *rig) machinePool(t *testing.T) {
	spec := referring("pool")
	spec["format"] = map[string]any{"type": "plain"}
	r.sysctl(t, "pool")
	r.put(t,
		made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapConfig, "pool", map[string]any{"spec": spec}),
		made(clusterv1.GroupVersion.String(), "MachinePool", "pool", map[string]any{"spec": map[string]any{
			"clusterName": "classy", "template": map[string]any{"spec": map[string]any{
				"clusterName": "classy", "version": "v1.36.3", "bootstrap": map[string]any{"configRef": configRef("pool")},
				"infrastructureRef": map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "DevMachinePool", "name": "none"},
			}},
		}}))
	var pools clusterv1.MachinePoolList
	management.Await(t, r, limit, &pools, func() error {
		if len(pools.Items) != 1 || pools.Items[0].Spec.Template.Spec.Bootstrap.DataSecretName == nil {
			return fmt.Errorf("the MachinePool has no data: %+v", pools.Items)
		}
		return nil
	}, client.InNamespace("default"))
	require.Equal(t, "pool"+dataSuffix, *pools.Items[0].Spec.Template.Spec.Bootstrap.DataSecretName)
	require.Contains(t, string(r.data(t, "default", "pool").Data["value"]), "kind: Sysctl")
}

// topology patches the cluster of class.yaml.
func (r *rig) topology(t *testing.T, patch string) {
	t.Helper()
	cluster := &clusterv1.Cluster{}
	cluster.Namespace, cluster.Name = "default", "classy"
	require.NoError(t, r.Patch(t.Context(), cluster, client.RawPatch("application/json-patch+json", []byte(patch))))
}

// workers waits until so many workers of a cluster have a node, each with the text in its data, and there is no other.
func (r *rig) workers(t *testing.T, cluster string, want int, text string) []clusterv1.Machine {
	t.Helper()
	var machines clusterv1.MachineList
	var found []clusterv1.Machine
	management.Await(t, r, limit, &machines, func() error {
		found = nil
		for i := range machines.Items {
			m := &machines.Items[i]
			if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
				continue
			}
			if m.Spec.Bootstrap.DataSecretName == nil || !m.Status.NodeRef.IsDefined() || m.Status.Phase != string(clusterv1.MachinePhaseRunning) {
				return fmt.Errorf("%s is %s", m.Name, m.Status.Phase)
			}
			var secret corev1.Secret
			key := client.ObjectKey{Namespace: m.Namespace, Name: *m.Spec.Bootstrap.DataSecretName}
			if err := r.Get(t.Context(), key, &secret); err != nil {
				return err
			}
			if !bytes.Contains(secret.Data["value"], []byte(text)) {
				return fmt.Errorf("the data of %s has no %s", m.Name, text)
			}
			found = append(found, *m)
		}
		if len(found) != want {
			return fmt.Errorf("there are %d workers, not %s", len(found), strconv.Itoa(want))
		}
		return nil
	}, client.InNamespace("default"), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster})
	return found
}
