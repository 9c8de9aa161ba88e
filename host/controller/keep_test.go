package controller

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	now                       time.Time
	gone, goes                bool // before it is read, or between that and its renewal
	created, renewed, deleted int
	reads                     int // with the client that has no cache
}

func (w *workload) GetClient(context.Context, client.ObjectKey) (client.Client, error) { return w, nil }

func (w *workload) GetUncachedClient(context.Context, client.ObjectKey) (client.Client, error) {
	w.reads++
	return w, nil
}

func (w *workload) Create(context.Context, client.Object, ...client.CreateOption) error {
	w.created++
	return nil
}

func (w *workload) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if w.gone {
		return apierrors.NewNotFound(corev1.Resource("secrets"), into.GetName())
	}
	if secret, ok := into.(*corev1.Secret); ok {
		secret.Data[bootstrapapi.BootstrapTokenExpirationKey] = expiration(w.now.Add(time.Minute))
	}
	return nil
}

func (w *workload) Patch(_ context.Context, into client.Object, _ client.Patch, _ ...client.PatchOption) error {
	if w.goes {
		return apierrors.NewNotFound(corev1.Resource("secrets"), into.GetName())
	}
	w.renewed++
	return nil
}

func (w *workload) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	w.deleted++
	return nil
}

// TestLostToken: the token of a Machine without a node is made again when its cluster has lost it, and looked at often.
func TestLostToken(t *testing.T) {
	t.Parallel()
	for _, server := range []*workload{{gone: true}, {goes: true}, {}} {
		w := keeping(t, server, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
		next, err := w.publish(t.Context(), 1)
		require.NoError(t, err)
		assert.Equal(t, server.gone || server.goes, server.created == 1)
		assert.LessOrEqual(t, next.RequeueAfter, 2*time.Minute)
		assert.Positive(t, next.RequeueAfter)
		assert.Zero(t, server.reads, "its cache has just been filled")
		w.r.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 2, 0, 0, time.UTC) }
		_, rotate, err := w.rotation(t.Context(), 1)
		assert.Equal(t, 1, server.reads)
		require.NoError(t, err)
		assert.Equal(t, !server.gone, rotate, "the token has a minute left")
	}
}

// keeping is the work for a config whose data is there.
func keeping(t *testing.T, server *workload, now time.Time) *work {
	t.Helper()
	server.now = now
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	r := &Reconciler{
		Workload: server, TokenTTL: 15 * time.Minute, Now: func() time.Time { return now },
		readers: newReaders(), digests: newDigests(), keys: newKeys(), metrics: m,
	}
	config := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "1"}}
	return &work{
		r: r, config: config, cluster: &clusterv1.Cluster{}, owner: &owner{kind: "Machine", object: &clusterv1.Machine{}},
		reading: &reading{r: r, config: config, inputs: newInputs(nil), bodies: map[input]body{}, left: map[input]struct{}{}},
	}
}

// TestKeepToken: the token of a Machine without a node is renewed for 24 hours. After that it is withdrawn, and the condition says so.
func TestKeepToken(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, ends := range map[time.Duration]bool{time.Hour: false, 24 * time.Hour: false, 24*time.Hour + time.Second: true} {
		now := made.Add(age)
		server := &workload{}
		w := keeping(t, server, now)
		config := w.config
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
			assert.Equal(t, tokenLook, next.RequeueAfter)
		}
	}
}

// TestPublished: machines of a Cluster without a control plane provider wait until kubeadm has published it.
func TestPublished(t *testing.T) {
	t.Parallel()
	server := &workload{gone: true}
	w := keeping(t, server, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	s := asStop(w.published(t.Context()))
	require.NotNil(t, s)
	assert.Equal(t, bootstrap.ReasonWaitingForControlPlane, s.reason)
	assert.Positive(t, s.again)
	assert.Equal(t, 1, server.reads, "no cache has it")
	server.gone = false
	w.r.keys.put(keyOf(w.cluster), "1", w.key)
	require.NoError(t, w.published(t.Context()))
	require.NoError(t, w.published(t.Context()))
	assert.Equal(t, 2, server.reads, "a look is for all machines")
	server.gone = true
	w.r.keys.setPublished(keyOf(w.cluster), w.r.Now().Add(-tokenLook))
	require.NotNil(t, asStop(w.published(t.Context())), "the control plane was created once more")
	w.cluster.Spec.ControlPlaneRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "n"}
	require.NoError(t, w.published(t.Context()), "the provider says when the control plane is there")
}

// TestUnregistered: the status of the first control plane changes until it has a node, and nothing of another machine does.
func TestUnregistered(t *testing.T) {
	t.Parallel()
	made := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "data", CreationTimestamp: metav1.NewTime(made)}}
	said := func(age time.Duration, change func(*work)) (string, time.Duration) {
		w := keeping(t, &workload{}, made.Add(age))
		w.owner.controlPlane = true
		change(w)
		w.available("data")
		next := w.unregistered(data)
		condition := find(w.config.Status.Conditions, bootstrap.ConditionDataSecretAvailable)
		require.Equal(t, metav1.ConditionTrue, condition.Status)
		return condition.Message, next.RequeueAfter
	}
	for age, want := range map[time.Duration]string{
		time.Second: "", 31 * time.Second: "the Machine has no node 30s after ", time.Minute: "the Machine has no node 1m0s after ",
	} {
		message, next := said(age, func(*work) {})
		require.True(t, strings.HasPrefix(message, want) && (message == "") == (want == ""), message)
		require.Zero(t, (age+next)%nodeLook)
		require.Positive(t, next)
	}
	for about, change := range map[string]func(*work){
		"a worker":              func(w *work) { w.owner.controlPlane = false },
		"a Machine with a node": func(w *work) { w.owner.joined = true },
		"a provider":            func(w *work) { w.cluster.Spec.ControlPlaneRef.Name = "provider" },
		"an initialized cluster": func(w *work) {
			w.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue}}
		},
	} {
		message, next := said(time.Hour, change)
		require.Empty(t, message, about)
		require.Zero(t, next, about)
	}
	message, next := said(25*time.Hour, func(*work) {})
	require.Empty(t, message)
	require.Zero(t, next)
}
