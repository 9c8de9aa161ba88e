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

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/token"
)

// taken: a machine whose token would have the ID of another token gets the next one, and the other one stays as it is.
func (r *rig) taken(t *testing.T) {
	key := r.secret(t, "default", "light-machineadm").Data["value"]
	first, second := token.Derive(key, "default", "taken", 1), token.Derive(key, "default", "taken", 2)
	other := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: bootstrapapi.BootstrapTokenSecretPrefix + first.ID},
		Type:       bootstrapapi.SecretTypeBootstrapToken,
		Data:       map[string][]byte{"token-id": []byte(first.ID), "token-secret": []byte("0123456789abcdef")},
	}
	require.NoError(t, r.Create(t.Context(), other))
	r.machine(t, "light", "taken", joining())
	require.Equal(t, "2", r.awaitData(t, "taken").Annotations[bootstrap.AnnotationTokenEpoch])
	require.Equal(t, second.Secret, string(r.token(t, second.String()).Data[bootstrapapi.BootstrapTokenSecretKey]))

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "taken"}}
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"taken"}}}`)))
	require.Eventually(t, func() bool {
		key := client.ObjectKey{Namespace: "kube-system", Name: bootstrapapi.BootstrapTokenSecretPrefix + second.ID}
		return apierrors.IsNotFound(r.Get(t.Context(), key, &corev1.Secret{}))
	}, soon, soon/300)
	now := &corev1.Secret{}
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(other), now))
	require.Equal(t, other.ResourceVersion, now.ResourceVersion)
}
