package management

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ClusterInfo is what kubeadm init publishes near its end, and the in-memory provider does not.
func ClusterInfo() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespacePublic, Name: bootstrapapi.ConfigMapClusterInfo}}
}

// Publish publishes that in a cluster in memory, of the namespace default, as soon as its API server is there.
func Publish(t testing.TB, c client.Reader, cluster string) {
	t.Helper()
	ctx, ended := t.Context(), make(chan struct{})
	published := func() bool {
		var secret corev1.Secret
		if c.Get(ctx, client.ObjectKey{Namespace: "default", Name: cluster + "-kubeconfig"}, &secret) != nil {
			return false
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(secret.Data["value"])
		if err != nil {
			return false
		}
		k, err := client.New(config, client.Options{})
		if err != nil {
			return false
		}
		err = k.Create(ctx, ClusterInfo())
		return err == nil || apierrors.IsAlreadyExists(err)
	}
	go func() {
		defer close(ended)
		looks := time.NewTicker(100 * time.Millisecond)
		defer looks.Stop()
		for !published() {
			select {
			case <-looks.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(func() { <-ended })
}
