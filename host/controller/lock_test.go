package controller

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// locked is an API server on which a Machine has the init lock of a Cluster.
type locked struct {
	client.Client
	holder  string
	cluster clusterv1.Cluster
	freed   bool
}

func (l *locked) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return apierrors.NewAlreadyExists(schema.GroupResource{Resource: "configmaps"}, o.GetName())
}

func (l *locked) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *corev1.ConfigMap:
		into.Data = map[string]string{lockKey: `{"machineName":"` + l.holder + `"}`}
	case *clusterv1.Cluster:
		*into = l.cluster
	}
	return nil
}

func (l *locked) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	l.freed = true
	return nil
}

// TestLockHeld: the Machine that has the lock may initialize the control plane, unless it has done so and the cache does not have it yet.
func TestLockHeld(t *testing.T) {
	t.Parallel()
	for about, initialized := range map[string]bool{"not initialized": false, "initialized a moment ago": true} {
		server := &locked{holder: "first"}
		if initialized {
			server.cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ClusterControlPlaneInitializedCondition, Status: metav1.ConditionTrue}}
		}
		err := (&Reconciler{Client: server, Live: server}).lock(t.Context(), &clusterv1.Cluster{}, "first")
		assert.Equal(t, initialized, server.freed, about)
		if !initialized {
			require.NoError(t, err, about)
			continue
		}
		require.NotNil(t, asStop(err), about)
		assert.Equal(t, bootstrap.ReasonWaitingForControlPlane, asStop(err).reason, about)
	}
}
