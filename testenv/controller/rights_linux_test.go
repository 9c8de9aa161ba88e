package controller

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// actions are the actions of a control plane, of a restoration and of a reader of metrics.
func (r *rig) actions(t *testing.T) {
	r.standalone(t)
	r.restored(t)
	r.families(t)
}

// rights: the manager uses every right of its roles, by that role, and has the rights of each plugin kind, of which the tests use some. Where the API server streams lists, a watch replaces a list: a manager
// without streams shows that it needs both.
func (r *rig) rights(t *testing.T) {
	r.manager.Stop(t)
	lists := r.Run(t, r.kubeconfig, "/usr/bin/env", "KUBE_FEATURE_WatchListClient=false", r.binary,
		"--health-addr="+r.health, "--diagnostics-address="+r.metrics)
	lists.AwaitReady(t, "http://"+r.health+"/readyz")
	r.machine(t, "older", "listed", joining()) // its Cluster has a control plane provider
	all, missing := granted(t), []string{}
	for _, kind := range contract.MachineKinds() {
		for _, resource := range []string{strings.ToLower(kind) + "s", strings.ToLower(kind) + "templates"} {
			for _, verb := range []string{"list", "patch", "watch"} {
				require.Contains(t, all, "ClusterRole "+verb+" "+contract.Group+"/"+resource)
			}
		}
	}
	all = slices.Compact(slices.Sorted(slices.Values(plugins(all))))
	require.Eventually(t, func() bool {
		used := map[string]bool{}
		for _, right := range plugins(slices.Collect(maps.Keys(r.used(t)))) {
			used[right] = true
		}
		missing = slices.DeleteFunc(slices.Clone(all), func(right string) bool { return used[right] })
		return len(missing) == 0
	}, soon, soon/30, "not used: %s", &missing)
	lists.Stop(t)
	r.tokensAlone(t)
}

// tokensAlone: in the cluster that machines join the manager reads and writes bootstrap tokens, reads single nodes, and looks whether the
// server answers and kubeadm has published the cluster.
func (r *rig) tokensAlone(t *testing.T) {
	t.Helper()
	verbs := map[string]int{}
	for _, q := range r.Audit(t) {
		if q.User.Name != workloadUser || q.Object.Resource == "" { // discovery and health
			continue
		}
		published := q.Object.Resource == "configmaps" && q.Object.Namespace == "kube-public" && q.Object.Name == "cluster-info"
		if q.Verb == "get" && (published || q.Object.Resource == "nodes") {
			continue
		}
		verbs[q.Verb]++
		require.Equal(t, "secrets", q.Object.Resource, "%+v", q)
		require.Equal(t, "kube-system", q.Object.Namespace, "%+v", q)
		if q.Verb != "list" && q.Verb != "watch" {
			require.True(t, strings.HasPrefix(q.Object.Name, "bootstrap-token-"), "%+v", q)
		}
	}
	for _, verb := range []string{"list", "create", "patch", "delete"} {
		require.Positive(t, verbs[verb], "%s in %v", verb, verbs)
	}
}

// plugins takes all plugin kinds for one, and so all of their templates: the manager does not know them apart.
func plugins(rights []string) []string {
	names := regexp.MustCompile(`(` + regexp.QuoteMeta(contract.Group) + `/)[a-z]+?(templates)?$`)
	for i, right := range rights {
		if found := names.FindStringSubmatch(right); found != nil {
			rights[i] = strings.TrimSuffix(right, found[0]) + found[1] + "PLUGINS" + found[2]
		}
	}
	return rights
}

// used are the rights that the manager has used, as granted has them.
func (r *rig) used(t *testing.T) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, q := range r.Audit(t) {
		_, role, _ := strings.Cut(q.Notes.Reason, " of ") // RBAC: allowed by ROLEBINDING of KIND NAME to USER
		kind, _, _ := strings.Cut(role, " ")
		if q.User.Name != account || q.Notes.Decision != "allow" {
			continue
		}
		resource := q.Object.Resource
		if q.Object.Subresource != "" {
			resource += "/" + q.Object.Subresource
		}
		all[kind+" "+q.Verb+" "+q.Object.Group+"/"+resource] = true
		all[kind+" "+q.Verb+" "+q.Object.Group+"/*"] = true
	}
	return all
}

// granted are the rights of the manager's roles, as KIND VERB GROUP/RESOURCE.
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
						all = append(all, o.GetKind()+" "+verb+" "+group+"/"+resource)
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
	cluster := r.uninitialized(t, "own")
	label := map[string]string{clusterv1.MachineControlPlaneLabel: ""}
	r.labeled(t, "own", "own-0", label, first())
	r.awaitData(t, "own-0")
	r.labeled(t, "own", "own-1", label, first())
	r.condition(t, bootstrap.ConditionReady, "Unknown", "Machine own-0 initializes the control plane", "own-1")
	require.NoError(t, r.Status().Patch(t.Context(), cluster, merge(`{"status":{"initialization":{"controlPlaneInitialized":true},"conditions":[
		{"type":"ControlPlaneInitialized","status":"True","reason":"Test","message":"","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`)))
	r.awaitData(t, "own-1")
}

// restored gives data, and the key of its cluster, the owner that they have after the restoration of a backup, which the manager corrects.
func (r *rig) restored(t *testing.T) {
	t.Helper()
	for _, name := range []string{"own-0" + dataSuffix, "own-machineadm"} {
		secret := r.secret(t, "default", name)
		want := secret.OwnerReferences[0].UID
		secret.OwnerReferences[0].UID = "00000000-0000-0000-0000-000000000000"
		require.NoError(t, r.Update(t.Context(), secret))
		require.Eventually(t, func() bool {
			var now corev1.Secret
			err := r.Get(t.Context(), client.ObjectKeyFromObject(secret), &now)
			if apierrors.IsNotFound(err) { // the cluster's garbage collector was faster than the manager: the backup has it still
				secret.ResourceVersion, secret.UID = "", ""
				err = client.IgnoreAlreadyExists(r.Create(t.Context(), secret.DeepCopy()))
			}
			require.NoError(t, err)
			return len(now.OwnerReferences) == 1 && now.OwnerReferences[0].UID == want
		}, soon, soon/300)
	}
}
