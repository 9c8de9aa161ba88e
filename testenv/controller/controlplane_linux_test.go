package controller

import (
	"bytes"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// TestControlPlane: Machines without a control plane provider. One initializes the cluster, the others join it.
//
//machineadm:core
func TestControlPlane(t *testing.T) {
	r := start(t, everything()...)
	r.apply(t, "standalone.yaml")
	management.Publish(t, r, "alone")
	r.running(t, 3)

	first, second, worker := r.node(t, "cp-0"), r.node(t, "cp-1"), r.node(t, "worker")
	if first.Role != "controlPlaneInit" {
		first, second = second, first
	}
	require.Equal(t, []string{"controlPlaneInit", "controlPlaneJoin", "worker"}, []string{first.Role, second.Role, worker.Role})
	require.Equal(t, []string{"192.168.0.0/16"}, first.Cluster.PodSubnets)
	require.Equal(t, "alone", first.Cluster.Name)
	require.Nil(t, first.Discovery)
	for _, pair := range []*contract.KeyPair{
		first.Certificates.CA, first.Certificates.EtcdCA, first.Certificates.FrontProxyCA, first.Certificates.ServiceAccount,
	} {
		require.Contains(t, string(pair.Key.Reveal()), "PRIVATE KEY")
	}
	require.Equal(t, first.Certificates.CA.Certificate, second.Certificates.CA.Certificate)
	require.NotNil(t, second.Discovery.Token)
	require.Nil(t, worker.Certificates, "a worker gets no key")
	require.Equal(t, second.Discovery.CACertHashes, worker.Discovery.CACertHashes)
	require.Equal(t, clusterv1.NodeUninitializedTaint.Key, worker.Node.Taints[0].Key)

	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	for i := range configs.Items {
		c := &configs.Items[i]
		require.True(t, meta.IsStatusConditionTrue(c.Status.Conditions, bootstrap.ConditionReady), "%+v", c.Status)
		require.True(t, meta.IsStatusConditionTrue(c.Status.Conditions, bootstrap.ConditionInputsUpToDate), "%+v", c.Status)
		require.Equal(t, []string{"KubernetesNode/node"}, c.Status.Order)
	}
	r.tokens(t, "alone", 0)
	err := r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "alone-lock"}, &corev1.ConfigMap{})
	require.ErrorContains(t, err, "not found", "the lock is free once the control plane is initialized")
	t.Run("paused", r.pause)
}

// pause: nothing is written for a cluster that is paused. What changed meanwhile is found when it is not any more.
func (r *rig) pause(t *testing.T) {
	cluster := &clusterv1.Cluster{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "alone"}, cluster))
	require.NoError(t, r.Patch(t.Context(), cluster, merge(`{"spec":{"paused":true}}`)))
	r.condition(t, clusterv1.PausedCondition, "True", "spec.paused")
	mark := len(r.Audit(t))

	require.NoError(t, r.Patch(t.Context(), object(contract.KindKubernetesNode, "node"), merge(`{"spec":{"profiles":["cis-1.11"]}}`)))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "True", "")
	r.manager.Stop(t)
	r.run(t)
	// A config of no cluster is reconciled after those that were there when the manager started.
	require.NoError(t, r.Create(t.Context(), config("last")))
	r.condition(t, bootstrap.ConditionReady, "Unknown", "no Machine", "last")
	for _, q := range r.Audit(t)[mark:] {
		// A reconciliation that began before the pause ends at the lock of the object.
		refused := q.Response.Code == http.StatusConflict
		if q.User.Name == account && q.Object.Name != "last" && q.Object.Resource != "events" && !refused {
			require.Contains(t, []string{"get", "list", "watch"}, q.Verb, "%+v", q)
		}
	}
	require.NoError(t, r.Patch(t.Context(), cluster, merge(`{"spec":{"paused":false}}`)))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False", "KubernetesNode.machineadm.cluster.x-k8s.io/node", "cp-0", "cp-1")
	r.condition(t, clusterv1.PausedCondition, "False", "", "worker")
	r.ready(t, 3)
}

// node is the KubernetesNode document of a config whose data is the plain stream.
func (r *rig) node(t *testing.T, config string) *contract.KubernetesNodeSpec {
	t.Helper()
	stream, err := document.Decode(config, bytes.NewReader(r.data(t, "default", config).Data["value"]))
	require.NoError(t, err)
	require.Empty(t, stream.Errors)
	for _, d := range stream.Documents {
		if d.Kind == contract.KindKubernetesNode {
			data, err := d.JSON()
			require.NoError(t, err)
			var node contract.KubernetesNode
			require.NoError(t, json.Unmarshal(data, &node))
			return &node.Spec
		}
	}
	t.Fatalf("%s has no KubernetesNode", config)
	return nil
}
