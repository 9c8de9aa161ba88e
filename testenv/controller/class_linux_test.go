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
