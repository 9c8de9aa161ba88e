package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// unused are rights that the test does not see in use, with the reason for each.
func unused() map[string]string {
	const list = "a watch that begins with all objects replaces it, where the API server has that"
	return map[string]string{
		"update bootstrap.cluster.x-k8s.io/machinebootstrapconfigs/finalizers": "the admission plugin OwnerReferencesPermissionEnforcement requires it",
		"patch /events": "the recorder of leader election patches an event that repeats",
		"list":          list,
	}
}

// rights: the manager uses every right of its roles.
func (r *rig) rights(t *testing.T) {
	r.standalone(t)
	r.restored(t)
	r.authorizedMetrics(t)
	used := map[string]bool{}
	for _, q := range r.Audit(t) {
		if q.User.Name != account || q.Notes.Decision != "allow" {
			continue
		}
		resource := q.Object.Resource
		if q.Object.Subresource != "" {
			resource += "/" + q.Object.Subresource
		}
		used[q.Verb+" "+q.Object.Group+"/"+resource] = true
		used[q.Verb+" "+q.Object.Group+"/*"] = true
	}
	for _, right := range granted(t) {
		verb, _, _ := strings.Cut(right, " ")
		if !used[right] && unused()[right] == "" && unused()[verb] == "" {
			t.Errorf("nothing uses %s", right)
		}
		assert.False(t, used[right] && unused()[right] != "", "%s is used", right)
	}
}

// granted are the rights of the manager's roles, as VERB GROUP/RESOURCE.
func granted(t *testing.T) []string {
	t.Helper()
	objects, err := management.Objects(management.Render(t, configuration(t)))
	require.NoError(t, err)
	var all []string
	for _, o := range objects {
		if o.GetKind() != "ClusterRole" && o.GetKind() != "Role" {
			continue
		}
		var role rbac.ClusterRole
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role))
		for _, rule := range role.Rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						all = append(all, verb+" "+group+"/"+resource)
					}
				}
			}
		}
	}
	require.NotEmpty(t, all)
	return all
}

// standalone makes a cluster whose control plane has no provider: the manager makes its authorities and guards its first Machine.
func (r *rig) standalone(t *testing.T) {
	t.Helper()
	r.cluster(t, "own")
	cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own"}}
	require.NoError(t, r.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "own-ca"}}))
	require.NoError(t, r.Status().Patch(t.Context(), cluster, merge(
		`{"status":{"initialization":{"controlPlaneInitialized":null},"conditions":[]}}`)))
	label := map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	spec := map[string]any{"format": map[string]any{"type": "plain"}, "documents": []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{"provider": "kubeadm"},
	}}}
	r.labeled(t, "own", "own-0", label, spec)
	r.awaitData(t, "own-0")
	r.labeled(t, "own", "own-1", label, spec)
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Machine own-0 initializes the control plane", "own-1")
	require.NoError(t, r.Status().Patch(t.Context(), cluster, merge(`{"status":{"initialization":{"controlPlaneInitialized":true},"conditions":[
		{"type":"ControlPlaneInitialized","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)))
	r.awaitData(t, "own-1")
}

// restored gives data the owner that it has after the restoration of a backup, which the manager corrects.
func (r *rig) restored(t *testing.T) {
	t.Helper()
	data := r.data(t, "default", "own-0")
	want := metav1.GetControllerOf(data).UID
	data.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000"
	require.NoError(t, r.Update(t.Context(), data))
	require.Eventually(t, func() bool {
		return metav1.GetControllerOf(r.data(t, "default", "own-0")).UID == want
	}, soon, soon/300)
}
