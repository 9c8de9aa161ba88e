package controller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// workload is a cluster that machines join, with a bootstrap token that expires in a minute. It counts what is done to the token.
type workload struct {
	clustercache.ClusterCache
	client.Client
	now              time.Time
	renewed, deleted int
}

func (w *workload) GetClient(context.Context, client.ObjectKey) (client.Client, error) { return w, nil }

func (w *workload) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if secret, ok := into.(*corev1.Secret); ok {
		secret.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(w.now.Add(time.Minute))
	}
	return nil
}

func (w *workload) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	w.renewed++
	return nil
}

func (w *workload) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	w.deleted++
	return nil
}

// TestKeepToken: the token of a Machine without a node is renewed for 24 hours. After that it is withdrawn, and the condition says so.
func TestKeepToken(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, ends := range map[time.Duration]bool{time.Hour: false, 24 * time.Hour: false, 24*time.Hour + time.Second: true} {
		now := made.Add(age)
		server := &workload{now: now}
		m, err := newMetrics(prometheus.NewRegistry())
		require.NoError(t, err)
		r := &Reconciler{
			Workload: server, TokenTTL: 15 * time.Minute, Now: func() time.Time { return now },
			readers: newReaders(), digests: newDigests(), keys: newKeys(), metrics: m,
		}
		config := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1"}}
		w := &work{
			r: r, config: config, cluster: &clusterv1.Cluster{}, owner: &owner{kind: "Machine", object: &clusterv1.Machine{}},
			reading: &reading{r: r, config: config, inputs: newInputs(nil), bodies: map[input]body{}, left: map[input]struct{}{}},
		}
		next, err := w.keep(t.Context(), &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "c", CreationTimestamp: metav1.NewTime(made), Annotations: map[string]string{bootstrap.AnnotationTokenEpoch: "1"},
			OwnerReferences: []metav1.OwnerReference{{UID: "1", Controller: ptr.To(true)}},
		}})
		require.NoError(t, err)
		available := find(config.Status.Conditions, bootstrap.ConditionDataSecretAvailable)
		assert.Equal(t, metav1.ConditionTrue, available.Status)
		if ends {
			assert.Equal(t, []int{0, 1}, []int{server.renewed, server.deleted}, "%s", age)
			assert.Contains(t, available.Message, "replace the Machine")
			assert.Zero(t, next)
		} else {
			assert.Equal(t, []int{1, 0}, []int{server.renewed, server.deleted}, "%s", age)
			assert.Empty(t, available.Message)
			assert.Equal(t, r.TokenTTL/2, next.RequeueAfter)
		}
	}
}
