package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// renewals: the token of a Machine without a node is renewed, comes back if it is gone, and is withdrawn when the Machine has a node
// or is being deleted. The data stays as it is.
func (r *rig) renewals(t *testing.T) {
	r.machine(t, "light", "joining", first())
	r.machine(t, "light", "giving-up", first())
	data := r.awaitData(t, "joining")
	r.awaitData(t, "giving-up")
	token := string(r.node(t, "joining").Discovery.Token.Reveal())
	r.renewed(t, token)

	// What removes expired tokens does so while the manager is stopped.
	r.manager.Stop(t)
	require.NoError(t, r.Delete(t.Context(), r.token(t, token)))
	r.run(t, inputsFlags()...)
	require.Eventually(t, func() bool { return r.hasToken(t, token) }, soon, soon/300)
	r.token(t, token)

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "joining"}}
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"joining"}}}`)))
	require.Eventually(t, func() bool { return !r.hasToken(t, token) }, soon, soon/300)
	require.Equal(t, data.ResourceVersion, r.data(t, "default", "joining").ResourceVersion)

	abandoned := string(r.node(t, "giving-up").Discovery.Token.Reveal())
	require.True(t, r.hasToken(t, abandoned))
	r.deleting(t, "giving-up")
	require.Eventually(t, func() bool { return !r.hasToken(t, abandoned) }, soon, soon/300)
}

// hasToken says whether the cluster that machines join has a bootstrap token.
func (r *rig) hasToken(t *testing.T, text string) bool {
	t.Helper()
	err := r.Get(t.Context(), client.ObjectKey{Namespace: "kube-system", Name: bootstrapapi.BootstrapTokenSecretPrefix + text[:6]}, &corev1.Secret{})
	if !apierrors.IsNotFound(err) {
		require.NoError(t, err)
	}
	return err == nil
}
