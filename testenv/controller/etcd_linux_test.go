package controller

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// externalEtcd: two control planes share a KubernetesNode with an external etcd, whose certificates are where Cluster API has them.
func (r *rig) externalEtcd(t *testing.T) {
	cluster := r.uninitialized(t, "ext")
	certificate, key := r.ca.Issue(t, "etcd-client")
	r.put(t, secret("ext-etcd", map[string]string{"tls.crt": string(r.ca.Certificate)}))
	spec := func() map[string]any {
		return map[string]any{"format": map[string]any{"type": "plain"}, "documents": []any{map[string]any{
			"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{
				"provider": "kubeadm", "apiServer": map[string]any{"args": []any{map[string]any{"name": "v", "value": "2"}}},
				"etcd": map[string]any{"external": map[string]any{"endpoints": []any{"https://10.9.8.7:2379"}}},
			},
		}}}
	}
	label := map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	r.labeled(t, "ext", "ext-0", label, spec())
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Secret ext-apiserver-etcd-client does not exist yet", "ext-0")
	r.put(t, secret("ext-apiserver-etcd-client", map[string]string{"tls.crt": string(certificate), "tls.key": string(r.ca.Certificate)}))
	r.condition(t, bootstrap.ConditionReady, "False", "Secret ext-apiserver-etcd-client: tls.key is not the key of the certificate", "ext-0")
	r.put(t, secret("ext-apiserver-etcd-client", map[string]string{"tls.crt": string(certificate), "tls.key": string(key)}))
	node := func(name string) contract.KubernetesNodeSpec {
		read, err := document.Decode(name, bytes.NewReader(r.awaitData(t, name).Data["value"]))
		require.NoError(t, err)
		require.Empty(t, read.Errors)
		require.Len(t, read.Documents, 1)
		text, err := read.Documents[0].JSON()
		require.NoError(t, err)
		var doc contract.KubernetesNode
		require.Empty(t, document.Unmarshal(text, &doc))
		return doc.Spec
	}
	check := func(s contract.KubernetesNodeSpec, role string) {
		assert.Equal(t, role, s.Role)
		assert.Equal(t, string(r.ca.Certificate), s.Etcd.External.CA)
		assert.Equal(t, string(certificate), s.Etcd.External.Cert)
		assert.Equal(t, string(key), string(s.Etcd.External.Key.Reveal()))
		assert.Nil(t, s.Certificates.EtcdCA)
		assert.NotNil(t, s.Certificates.CA)
		assert.Equal(t, role == contract.ControlPlaneInit, s.APIServer != nil)
	}
	check(node("ext-0"), contract.ControlPlaneInit)
	require.Len(t, r.secret(t, "default", "ext-etcd").Data, 1, "nothing is made in its place")
	require.NoError(t, r.Status().Patch(t.Context(), cluster, merge(`{"status":{"initialization":{"controlPlaneInitialized":true},"conditions":[
		{"type":"ControlPlaneInitialized","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)))
	r.labeled(t, "ext", "ext-1", label, spec())
	check(node("ext-1"), contract.ControlPlaneJoin)
}
