package controller

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/serve"
	"github.com/machineadm/machineadm/host/controller/store"
)

// decoding is a client that leaves fields of an object as they are which the answer does not have, as the client of an API server does.
type decoding struct{ client.Client }

func (d decoding) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	config, ok := into.(*bootstrap.MachineBootstrapConfig)
	if !ok {
		return d.Client.Get(ctx, key, into, options...)
	}
	var found bootstrap.MachineBootstrapConfig
	if err := d.Client.Get(ctx, key, &found, options...); err != nil {
		return err
	}
	text, err := json.Marshal(&found)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, config)
}

// TestReportIsOneChange: a report and the conditions that follow from it are one change of the config, and the first of a machine is kept
// although another writer of the status is faster.
func TestReportIsOneChange(t *testing.T) {
	t.Parallel()
	const bearer = "bearer"
	of := types.NamespacedName{Namespace: "ns", Name: "node"}
	meta := func(kind, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: of.Namespace, Name: name, UID: types.UID(kind), Generation: 1}
	}
	owned := func(m metav1.ObjectMeta, owner metav1.Object, apiVersion, kind string) metav1.ObjectMeta {
		isController := true
		m.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner.GetName(), UID: owner.GetUID(), Controller: &isController}}
		return m
	}
	machine := &clusterv1.Machine{ObjectMeta: meta("machine", of.Name)}
	machine.Spec.Bootstrap.ConfigRef = clusterv1.ContractVersionedObjectReference{
		APIGroup: bootstrap.Group, Kind: bootstrap.KindMachineBootstrapConfig, Name: of.Name,
	}
	config := &bootstrap.MachineBootstrapConfig{ObjectMeta: owned(meta("config", of.Name), machine, clusterv1.GroupVersion.String(), "Machine")}
	config.Status.ObservedGeneration = 1
	(&work{config: config}).available(dataName(of.Name))
	terms, err := store.NewTerms(&bootstrap.MachineBootstrapStorageSpec{Server: &bootstrap.ServerStorage{}}, false)
	require.NoError(t, err)
	terms.Served(bearer)
	annotation, err := terms.Annotation()
	require.NoError(t, err)
	data := &corev1.Secret{
		ObjectMeta: owned(meta("data", dataName(of.Name)), config, bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapConfig),
		Data:       map[string][]byte{documentsKey: []byte("documents")},
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	data.CreationTimestamp = metav1.NewTime(now)
	data.Annotations = map[string]string{bootstrap.AnnotationStorage: annotation}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{bootstrap.AddToScheme, clusterv1.AddToScheme, corev1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	conflicts, patches := 1, 0
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine, config, data).WithStatusSubresource(config).WithInterceptorFuncs(interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			if conflicts > 0 {
				conflicts--
				return apierrors.NewConflict(bootstrap.GroupVersion().WithResource("machinebootstrapconfigs").GroupResource(), o.GetName(), nil)
			}
			patches++
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
	}).Build()
	r := &Reconciler{events: unwritten(t), Now: func() time.Time { return now }}
	r.metrics = r.events.metrics
	s := &Served{Reconciler: r, Client: c, Live: decoding{c}}
	stored := func() *bootstrap.MachineBootstrapConfig {
		var found bootstrap.MachineBootstrapConfig
		require.NoError(t, c.Get(t.Context(), of, &found))
		return &found
	}
	report := func(outcome string) []byte {
		return []byte(`{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"RunReport","outcome":"` + outcome + `"}`)
	}

	require.NoError(t, s.Report(t.Context(), of, bearer, 1, report("Running")))
	assert.Equal(t, 1, patches)
	assert.EqualValues(t, 1, stored().Status.Bootstrap.Sequence)
	assert.Equal(t, bootstrap.ReasonRunning, conditions.GetReason(stored(), bootstrap.ConditionBootstrapSucceeded))

	documents, err := s.Data(t.Context(), of, bearer)
	require.NoError(t, err)
	assert.Equal(t, "documents", string(documents))
	assert.Equal(t, 2, patches)
	assert.NotNil(t, stored().Status.Bootstrap.FetchedAt)

	require.NoError(t, s.Report(t.Context(), of, bearer, 2, report("Failed")))
	assert.Equal(t, 3, patches)
	assert.NotNil(t, stored().Status.Bootstrap.FetchedAt, "it stays")
	for _, kind := range []string{bootstrap.ConditionBootstrapSucceeded, bootstrap.ConditionReady} {
		assert.Equal(t, metav1.ConditionFalse, conditions.Get(stored(), kind).Status, kind)
	}
	assert.Len(t, r.events.queue, 2, "Running and Failed")
	require.ErrorIs(t, s.Report(t.Context(), of, bearer, 1, report("Succeeded")), serve.ErrOld)

	paused := stored()
	mark(paused, clusterv1.PausedCondition, metav1.ConditionTrue, clusterv1.PausedReason, "")
	require.NoError(t, c.Status().Update(t.Context(), paused))
	require.NoError(t, s.Report(t.Context(), of, bearer, 3, report("Succeeded")))
	assert.EqualValues(t, 3, stored().Status.Bootstrap.Sequence)
	assert.True(t, conditions.IsFalse(stored(), bootstrap.ConditionBootstrapSucceeded), "the reconciler marks it when the config is not paused any more")
}
