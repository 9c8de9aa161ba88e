package controller

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	authorization "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// TestScope: the flags by which a manager leaves objects to others. What it leaves, another manager then makes.
func TestScope(t *testing.T) {
	r := light(t, "--watch-filter=blue")
	t.Run("watch filter", r.filtered)
	t.Run("namespace", r.confined)
}

// joining is the spec of a config whose machine joins the cluster, to which the manager has to connect.
func joining() map[string]any {
	return map[string]any{"documents": []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{"provider": "kubeadm"},
	}}}
}

// filtered: the manager makes the data of configs with its label alone. Machines, whose events it gets all, need none.
func (r *rig) filtered(t *testing.T) {
	r.mark(t, &clusterv1.Cluster{}, "light", "blue")
	for name, value := range map[string]string{"none": "", "green": "green"} {
		r.machine(t, "light", name, joining())
		if value != "" {
			r.mark(t, &bootstrap.MachineBootstrapConfig{}, name, value)
		}
	}
	r.machine(t, "light", "blue", joining())
	r.mark(t, &bootstrap.MachineBootstrapConfig{}, "blue", "blue")
	r.awaitData(t, "blue")
	r.untouched(t, "none", "green")

	r.manager.Stop(t)
	r.run(t, "--watch-filter=green")
	r.mark(t, &clusterv1.Cluster{}, "light", "green")
	r.awaitData(t, "green")
	r.untouched(t, "none")

	r.manager.Stop(t)
	r.run(t)
	r.awaitData(t, "none")
}

// mark gives an object the label of a watch filter.
func (r *rig) mark(t *testing.T, o client.Object, name, value string) {
	t.Helper()
	o.SetNamespace(r.namespace)
	o.SetName(name)
	require.NoError(t, r.Patch(t.Context(), o, merge(`{"metadata":{"labels":{"`+clusterv1.WatchLabel+`":"`+value+`"}}}`)))
}

// untouched checks that nothing was written to configs, and nothing made of them.
func (r *rig) untouched(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		key := client.ObjectKey{Namespace: r.namespace, Name: name}
		var c bootstrap.MachineBootstrapConfig
		require.NoError(t, r.Get(t.Context(), key, &c))
		require.Empty(t, c.Status.Conditions, name)
		key.Name += dataSuffix
		require.True(t, apierrors.IsNotFound(r.Get(t.Context(), key, &corev1.Secret{})), name)
	}
}

// confined: a manager of one namespace has the rights of its role in that namespace alone, and those to objects without a namespace.
// It asks for nothing else.
func (r *rig) confined(t *testing.T) {
	tenant, other := r.in("tenant"), r.in("other")
	for _, x := range []*rig{tenant, other} {
		require.NoError(t, r.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: x.namespace}}))
		x.cluster(t, "light")
	}
	r.manager.Stop(t)
	restore := r.confine(t, tenant.namespace)
	mark := len(r.Audit(t))
	r.run(t, "--namespace=tenant", "--insecure-diagnostics=false")
	other.machine(t, "light", "there", joining())
	tenant.machine(t, "light", "here", joining())
	tenant.awaitData(t, "here")
	other.untouched(t, "there")
	claimed := joining()
	claimed["storageRef"] = claiming()["storageRef"]
	tenant.machine(t, "light", "claimed", claimed)
	tenant.condition(t, bootstrap.ConditionDataStored, "Unknown", "waits for the controller of Directory files", "claimed")
	tenant.discard(t, "claimed")
	tenant.unclaimed(t, "claimed")
	r.authorizedMetrics(t)
	for _, q := range r.Audit(t)[mark:] {
		if q.User.Name == account && q.Object.Resource != "" && q.Object.Namespace != tenant.namespace {
			require.Contains(t, []string{"customresourcedefinitions", "tokenreviews", "subjectaccessreviews"}, q.Object.Resource, "%s", q.URI)
		}
	}
	r.manager.Stop(t)
	restore()
	r.run(t)
	other.awaitData(t, "there")
}

// confine takes the manager's rights to all namespaces, as docs/clusterctl.md describes it. The function that it returns gives them back.
func (r *rig) confine(t *testing.T, namespace string) func() {
	t.Helper()
	const name = "machineadm-system-manager-rolebinding"
	var everywhere rbac.ClusterRoleBinding
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Name: name}, &everywhere))
	require.NoError(t, r.Delete(t.Context(), everywhere.DeepCopy()))
	page, err := os.ReadFile("../../docs/clusterctl.md")
	require.NoError(t, err)
	_, roles, found := strings.Cut(string(page), "```yaml\napiVersion: rbac")
	require.True(t, found)
	roles, _, _ = strings.Cut("apiVersion: rbac"+roles, "```")
	r.Install(t, []byte(roles))
	allowed := func(where string) bool {
		review := authorization.SubjectAccessReview{Spec: authorization.SubjectAccessReviewSpec{
			User: account, Groups: []string{"system:serviceaccounts"},
			ResourceAttributes: &authorization.ResourceAttributes{Namespace: where, Verb: "list", Resource: "secrets"},
		}}
		require.NoError(t, r.Create(t.Context(), &review))
		return review.Status.Allowed
	}
	require.Eventually(t, func() bool { return !allowed("") && allowed(namespace) }, soon, soon/300)
	return func() {
		everywhere.ResourceVersion = ""
		require.NoError(t, r.Create(t.Context(), &everywhere))
		require.Eventually(t, func() bool { return allowed("") }, soon, soon/300)
	}
}
