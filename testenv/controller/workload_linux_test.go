package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/management"
)

// workload is a client of a cluster that machines join.
func (r *rig) workload(t *testing.T, cluster string) client.WithWatch {
	t.Helper()
	var secret corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: cluster + "-kubeconfig"}, &secret))
	config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
	require.NoError(t, err)
	k, err := client.NewWithWatch(config, client.Options{})
	require.NoError(t, err)
	return k
}

// tokens waits until a cluster has so many bootstrap tokens, and returns them.
func (r *rig) tokens(t *testing.T, cluster string, want int) []corev1.Secret {
	t.Helper()
	var secrets corev1.SecretList
	var found []corev1.Secret
	management.Await(t, r.workload(t, cluster), limit, &secrets, func() error {
		found = nil
		for i := range secrets.Items {
			if secrets.Items[i].Type == bootstrapapi.SecretTypeBootstrapToken {
				found = append(found, secrets.Items[i])
			}
		}
		if len(found) != want {
			return fmt.Errorf("%d tokens are there, not %d", len(found), want)
		}
		return nil
	}, client.InNamespace("kube-system"), client.MatchingFieldsSelector{Selector: fields.Everything()})
	return found
}
