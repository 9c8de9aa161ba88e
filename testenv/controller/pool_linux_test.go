package controller

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/authority"
	"github.com/machineadm/machineadm/testenv/management"
)

// pool: the data of a MachinePool follows its inputs, and its token, of which the life is tokenTTL, another one.
func (r *rig) pool(t *testing.T) {
	r.put(t, made(contract.APIVersion, contract.KindSysctl, "pool", map[string]any{"spec": map[string]any{"parameters": map[string]any{"a.b": "1"}}}))
	ref := map[string]any{"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "TestMachinePool", "name": "pool"}
	machinePool := made(clusterv1.GroupVersion.String(), "MachinePool", "pool", map[string]any{"spec": map[string]any{
		"clusterName": "light", "template": map[string]any{"spec": map[string]any{
			"clusterName": "light", "version": "v1.36.3", "infrastructureRef": ref, "bootstrap": map[string]any{"configRef": configRef("pool")},
		}},
	}})
	r.put(t, machinePool)
	r.put(t, owned(machinePool, "light", map[string]any{
		"pluginRefs": []any{map[string]any{"apiGroup": contract.Group, "kind": contract.KindSysctl, "name": "pool"}},
		"documents": []any{map[string]any{
			"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{"provider": "kubeadm"},
		}},
		"format": map[string]any{"type": "plain"},
	}))
	first := r.awaitData(t, "pool")
	require.Equal(t, "1", first.Annotations[bootstrap.AnnotationTokenEpoch])
	token := string(r.node(t, "pool").Discovery.Token.Reveal())

	require.NoError(t, r.Patch(t.Context(), object(contract.KindSysctl, "pool"), merge(`{"spec":{"parameters":{"a.b":"2"}}}`)))
	second := r.awaitPool(t, func(s *corev1.Secret) bool { return s.ResourceVersion != first.ResourceVersion })
	require.Contains(t, string(second.Data["value"]), `a.b: "2"`)
	r.condition(t, bootstrap.ConditionInputsUpToDate, "True", "", "pool")

	epoch := func(s *corev1.Secret) int {
		n, err := strconv.Atoi(s.Annotations[bootstrap.AnnotationTokenEpoch])
		require.NoError(t, err)
		return n
	}
	third := r.awaitPool(t, func(s *corev1.Secret) bool { return epoch(s) > epoch(first) })
	require.Equal(t, 2, epoch(third))
	require.Contains(t, string(third.Data["value"]), `a.b: "2"`)
	require.NotEqual(t, token, string(r.node(t, "pool").Discovery.Token.Reveal()))
	old := r.token(t, token)
	left, err := time.Parse(time.RFC3339, string(old.Data[bootstrapapi.BootstrapTokenExpirationKey]))
	require.NoError(t, err)
	// The time of the API server: how late this test sees it does not count. Both times are of whole seconds.
	at := written(third)
	require.Positive(t, left.Sub(at), "machines that have the old token can still join")
	require.LessOrEqual(t, left.Sub(at), tokenTTL/2+time.Second, "the token is another one when half of its life is over")
	r.token(t, string(r.node(t, "pool").Discovery.Token.Reveal()))

	// The manager writes nothing else than the token and the data.
	var c bootstrap.MachineBootstrapConfig
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "pool"}, &c))
	require.Equal(t, "pool"+dataSuffix, c.Status.DataSecretName)
	status, err := json.Marshal(c.Status)
	require.NoError(t, err)
	require.NotContains(t, string(status), token[7:])
	r.condition(t, bootstrap.ConditionReady, "True", "", "pool")
	r.followed(t, machinePool)
	r.kept(t)
}

// written is when the API server last wrote a Secret.
func written(s *corev1.Secret) time.Time {
	last := s.CreationTimestamp.Time
	for _, f := range s.ManagedFields {
		if f.Time != nil && f.Time.After(last) {
			last = f.Time.Time
		}
	}
	return last
}

// followed: what Cluster API has of the pool and its cluster is an input of the data. Annotations of others stay.
func (r *rig) followed(t *testing.T, machinePool *unstructured.Unstructured) {
	t.Helper()
	require.NoError(t, r.Patch(t.Context(), r.data(t, "default", "pool"), merge(`{"metadata":{"annotations":{"example.com/test":"kept"}}}`)))
	require.NoError(t, r.Patch(t.Context(), machinePool, merge(`{"spec":{"template":{"spec":{"version":"v1.36.4"}}}}`)))
	data := r.awaitPool(t, func(s *corev1.Secret) bool {
		return bytes.Contains(s.Data["value"], []byte("kubernetesVersion: v1.36.4"))
	})
	require.Equal(t, "kept", data.Annotations["example.com/test"])
	hash := []byte(r.node(t, "pool").Discovery.CACertHashes[0])
	r.put(t, secret("light-ca", map[string]string{"tls.crt": string(authority.New(t).Certificate)}))
	r.awaitPool(t, func(s *corev1.Secret) bool { return !bytes.Contains(s.Data["value"], hash) })
	r.condition(t, bootstrap.ConditionInputsUpToDate, "True", "", "pool")
}

// kept: while an input is missing, the pool keeps its data, and the token in it stays valid.
func (r *rig) kept(t *testing.T) {
	t.Helper()
	require.NoError(t, r.Delete(t.Context(), object(contract.KindSysctl, "pool")))
	r.condition(t, bootstrap.ConditionInputsUpToDate, "False",
		"the pool keeps its data until it can be made again: spec.pluginRefs[0]: Sysctl pool does not exist in namespace default: create it", "pool")
	data, token := r.data(t, "default", "pool"), string(r.node(t, "pool").Discovery.Token.Reveal())
	r.renewed(t, token)
	require.Equal(t, data.ResourceVersion, r.data(t, "default", "pool").ResourceVersion)
	r.put(t, made(contract.APIVersion, contract.KindSysctl, "pool", map[string]any{"spec": map[string]any{"parameters": map[string]any{"a.b": "3"}}}))
	r.awaitPool(t, func(s *corev1.Secret) bool { return bytes.Contains(s.Data["value"], []byte(`a.b: "3"`)) })
	r.condition(t, bootstrap.ConditionInputsUpToDate, "True", "", "pool")
}

// renewed waits until a bootstrap token expires later than it does now.
func (r *rig) renewed(t *testing.T, text string) {
	t.Helper()
	expires := func() string { return string(r.token(t, text).Data[bootstrapapi.BootstrapTokenExpirationKey]) }
	before := expires()
	require.Eventually(t, func() bool { return expires() > before }, soon, soon/300)
}

// awaitPool waits for data of the pool.
func (r *rig) awaitPool(t *testing.T, met func(*corev1.Secret) bool) *corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	management.Await(t, r, soon, &secrets, func() error {
		if len(secrets.Items) != 1 || !met(&secrets.Items[0]) {
			return fmt.Errorf("the data of the pool is as before")
		}
		return nil
	}, client.InNamespace("default"), client.MatchingFields{"metadata.name": "pool" + dataSuffix})
	return &secrets.Items[0]
}

// token is the Secret of a bootstrap token in the cluster that machines join.
func (r *rig) token(t *testing.T, text string) *corev1.Secret {
	t.Helper()
	var found corev1.Secret
	key := client.ObjectKey{Namespace: "kube-system", Name: bootstrapapi.BootstrapTokenSecretPrefix + text[:6]}
	require.NoError(t, r.Get(t.Context(), key, &found))
	require.Equal(t, text[7:], string(found.Data[bootstrapapi.BootstrapTokenSecretKey]))
	return &found
}
