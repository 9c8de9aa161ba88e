package tenant

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/testenv/management"
)

// lostOwner is the owner of the data of the config lost.
const lostOwner = `{"metadata":{"ownerReferences":[{"apiVersion":"bootstrap.cluster.x-k8s.io/v1alpha1","kind":"MachineBootstrapConfig","name":"lost","uid":"u","controller":true}]}}`

// orphan is data that a backup restores without its owner.
func orphan(s *corev1.Secret) {
	s.OwnerReferences, s.Annotations = nil, map[string]string{"machineadm.cluster.x-k8s.io/inputs": "[]"}
}

// TestPolicy tries to break what the manager may write, as its account with every right of RBAC.
func TestPolicy(t *testing.T) {
	r := begin(t)
	r.ControllerManager.Stop(t) // its garbage collector would delete Secrets whose owners the test does not make
	k := r.as(t, management.Account)
	r.awaitPolicies(t, k)
	owner := func(f func(*metav1.OwnerReference)) change {
		return func(s *corev1.Secret) { f(&s.OwnerReferences[0]) }
	}
	must := func(objects ...client.Object) {
		for _, o := range objects {
			require.NoError(t, r.admin.Create(t.Context(), o))
		}
	}
	// What others have, and what the manager has made before.
	must(foreign("tenant", "victim-kubeconfig"), foreign("others", "registry"), foreign("tenant", "old"+suffix),
		data("mine"), data("mine2"), data("kept"), data("lost", orphan), data("lost2", orphan, func(s *corev1.Secret) { s.Annotations = nil }), key("mine"), authority("mine", "-ca"), lock("mine"), lock("second"),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Data: map[string]string{"Corefile": "x"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "app-lock"}, Data: map[string]string{"x": "y"}},
		sysctl("shared"))
	all := []attempt{
		// The flows of the manager.
		{"create data", allowed, create(data("a"))},
		{"create data, 253 characters of name", allowed, create(data(strings.Repeat("n", 253-len(suffix))))},
		{"server-side apply of new data", allowed, apply(data("applied"))},
		{"update of data (pool)", allowed, put(data("mine"), func(s *corev1.Secret) { s.Data["value"] = []byte("new") })},
		{"merge patch of the data's values", allowed, patch(data("mine"), types.MergePatchType, `{"data":{"value":"bmV3ZXI="}}`)},
		{"merge patch: another UID of the owner (restored)", allowed, patch(data("mine"), types.MergePatchType,
			`{"metadata":{"ownerReferences":[{"apiVersion":"bootstrap.cluster.x-k8s.io/v1alpha1","kind":"MachineBootstrapConfig","name":"mine","uid":"other","controller":true}]}}`)},
		{"merge patch: the owner, with other content (restored without one)", denied, patch(data("lost"), types.MergePatchType, `{"data":{"value":"bmV3ZXI="},`+lostOwner[1:])},
		{"merge patch: the owner of what the manager has not made", denied, patch(data("lost2"), types.MergePatchType, strings.ReplaceAll(lostOwner, "lost", "lost2"))},
		{"merge patch: the owner (restored without one)", allowed, patch(data("lost"), types.MergePatchType, lostOwner)},
		{"create a key", allowed, create(key("c1"))},
		{"key: another UID of its owner (restored), though it is immutable", allowed, patch(key("mine"), types.MergePatchType,
			`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"mine","uid":"other"}]}}`)},
		{"create -ca", allowed, create(authority("c2", "-ca"))},
		{"create -etcd", allowed, create(authority("c2", "-etcd"))},
		{"create -proxy", allowed, create(authority("c2", "-proxy"))},
		{"create -sa", allowed, create(authority("c2", "-sa"))},
		{"create data with documents", allowed, create(data("served", func(s *corev1.Secret) { s.Data["documents"] = []byte("d") }))},
		{"merge patch: the documents removed", allowed, patch(data("served"), types.MergePatchType, `{"data":{"documents":null}}`)},
		{"create the authority of the endpoint in another namespace", denied, create(server(func(s *corev1.Secret) { s.Namespace = "tenant" }))},
		{"create the authority of the endpoint under another name", denied, create(server(named("victim2-kubeconfig")))},
		{"create the authority of the endpoint with another type", denied, create(server(func(s *corev1.Secret) { s.Type = corev1.SecretTypeTLS }))},
		{"create an authority of the endpoint that can change", denied, create(server(func(s *corev1.Secret) { s.Immutable = nil }))},
		{"create the authority of the endpoint", allowed, create(server())},
		{"a label for the authority of the endpoint", denied, patch(server(), types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)},
		{"create the init lock", allowed, create(lock("c3"))},
		{"delete the init lock", allowed, remove(lock("mine"))},
		{"plugin object: add an owner", allowed, patch(sysctl("shared"), types.MergePatchType,
			`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","name":"c","uid":"u"}]}}`)},

		// Creation.
		{"a config named victim2-kubeconfig, name of today", denied, create(data("victim2-kubeconfig", named("victim2-kubeconfig")))},
		{"a config named victim2-kubeconfig, with the suffix: nobody looks for it", allowed, create(data("victim2-kubeconfig"))},
		{"data named like a key", denied, create(data("victim2-machineadm", named("victim2-machineadm")))},
		{"data named like an authority", denied, create(data("victim2-ca", named("victim2-ca")))},
		{"data named like another config's data", denied, create(data("b", named("other"+suffix)))},
		{"data without the label", denied, create(data("b", func(s *corev1.Secret) { s.Labels = nil }))},
		{"data with an empty label", denied, create(data("b", func(s *corev1.Secret) { s.Labels["cluster.x-k8s.io/cluster-name"] = "" }))},
		{"data of type Opaque", denied, create(data("b", func(s *corev1.Secret) { s.Type = "Opaque" }))},
		{"data without a type", denied, create(data("b", func(s *corev1.Secret) { s.Type = "" }))},
		{"token of a service account", denied, create(data("b", func(s *corev1.Secret) {
			s.Type, s.Annotations = corev1.SecretTypeServiceAccountToken, map[string]string{corev1.ServiceAccountNameKey: "default"}
		}))},
		{"bootstrap token of the management cluster", denied, create(&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}, Type: corev1.SecretTypeBootstrapToken,
			Data: map[string][]byte{"token-id": []byte("abcdef"), "token-secret": []byte("0123456789abcdef"), "usage-bootstrap-authentication": []byte("true")},
		})},
		{"type of ClusterResourceSet", denied, create(data("b", func(s *corev1.Secret) { s.Type = "addons.cluster.x-k8s.io/resource-set" }))},
		{"data without an owner", denied, create(data("b", func(s *corev1.Secret) { s.OwnerReferences = nil }))},
		{"owner is no controller", denied, create(data("b", owner(func(o *metav1.OwnerReference) { o.Controller = nil })))},
		{"owner of another kind", denied, create(data("b", owner(func(o *metav1.OwnerReference) { o.Kind = "KubeadmConfig" })))},
		{"owner of a group that begins alike", denied, create(data("b", owner(func(o *metav1.OwnerReference) { o.APIVersion = "bootstrap.cluster.x-k8s.io.evil/v1" })))},
		{"owner with another name", denied, create(data("b", owner(func(o *metav1.OwnerReference) { o.Name = "c" })))},
		{"owner with an empty name", invalid, create(data("b", named("machineadm-data"), owner(func(o *metav1.OwnerReference) { o.Name = "" })))},
		{"suffix in capitals", invalid, create(data("b", named("b-Machineadm-Data")))},
		{"further key", denied, create(data("b", func(s *corev1.Secret) { s.Data["kubeconfig"] = nil }))},
		{"further key by stringData", denied, create(data("b", func(s *corev1.Secret) { s.StringData = map[string]string{"tls.key": "x"} }))},
		{"generateName", denied, create(data("b", func(s *corev1.Secret) { s.Name, s.GenerateName = "", "b-" }))},
		{"generateName that ends with the suffix", denied, create(data("b", func(s *corev1.Secret) { s.Name, s.GenerateName = "", "b"+suffix }))},
		{"creation as a dry run", denied, func(ctx context.Context, k client.Client) error {
			return k.Create(ctx, foreign("tenant", "dry"), client.DryRunAll)
		}},
		{"Secret of another namespace", denied, create(foreign("others", "new"))},
		{"key of today's type", denied, create(key("c4", func(s *corev1.Secret) { s.Type = "cluster.x-k8s.io/secret" }))},
		{"key that can change", denied, create(key("c4", func(s *corev1.Secret) { s.Immutable = nil }))},
		{"key with two values", denied, create(key("c4", func(s *corev1.Secret) { s.Data["b"] = nil }))},
		{"key of another cluster", denied, create(key("c4", named("victim2-machineadm")))},
		{"key that a config owns", denied, create(data("victim2", named("victim2-machineadm"), immutable, func(s *corev1.Secret) { s.Type = keyType }))},
		{"-kubeconfig of a cluster", denied, create(authority("c2", "-kubeconfig"))},
		{"-apiserver-etcd-client", denied, create(authority("c2", "-apiserver-etcd-client"))},
		{"-ca with a value", denied, create(authority("c5", "-ca", func(s *corev1.Secret) { s.Data["value"] = nil }))},
		{"-ca of another cluster", denied, create(authority("c5", "-ca", named("victim2-ca")))},
		{"-ca that a config owns, and a Cluster without its name", denied, create(data("victim2-ca", named("victim2-ca"), func(s *corev1.Secret) {
			s.OwnerReferences = append(s.OwnerReferences, metav1.OwnerReference{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: "c", UID: "u"})
		}))},

		// Changes.
		{"label removed", denied, patch(data("mine2"), types.MergePatchType, `{"metadata":{"labels":null}}`)},
		{"owner removed", denied, patch(data("mine2"), types.MergePatchType, `{"metadata":{"ownerReferences":null}}`)},
		{"another config as owner", denied, patch(data("mine2"), types.MergePatchType,
			`{"metadata":{"ownerReferences":[{"apiVersion":"bootstrap.cluster.x-k8s.io/v1alpha1","kind":"MachineBootstrapConfig","name":"x","uid":"u","controller":true}]}}`)},
		{"JSON patch: a further key", denied, patch(data("mine2"), types.JSONPatchType, `[{"op":"add","path":"/data/kubeconfig","value":""}]`)},
		{"another type", invalid, patch(data("mine2"), types.MergePatchType, `{"type":"Opaque"}`)},
		{"another name", invalid, patch(data("mine2"), types.MergePatchType, `{"metadata":{"name":"victim2-kubeconfig"}}`)},
		{"patch of a foreign Secret", denied, patch(foreign("others", "registry"), types.StrategicMergePatchType, `{"data":{"value":"eA=="}}`)},
		{"update of a foreign Secret", denied, put(foreign("others", "registry"), func(s *corev1.Secret) { s.Data["value"] = nil })},
		{"server-side apply on a foreign Secret", denied, apply(foreign("others", "registry"))},
		{"server-side apply of a new foreign Secret", denied, apply(foreign("others", "registry2"))},
		{"a kubeconfig that is there gets our label and owner", denied, put(foreign("tenant", "victim-kubeconfig"), func(s *corev1.Secret) {
			d := data("victim-kubeconfig")
			s.Labels, s.OwnerReferences = d.Labels, d.OwnerReferences
		})},
		{"a foreign Secret with our suffix gets our label and owner", denied, put(foreign("tenant", "old"+suffix), func(s *corev1.Secret) {
			d := data("old")
			s.Labels, s.OwnerReferences = d.Labels, d.OwnerReferences
		})},
		{"another value of a key", invalid, put(key("mine"), func(s *corev1.Secret) { s.Data["value"] = []byte("x"); s.Immutable = nil })},
		{"another value of a key that stays immutable", invalid, put(key("mine"), func(s *corev1.Secret) { s.Data["value"] = []byte("x") })},
		{"a new authority in the place of one", denied, put(authority("mine", "-ca"), func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("x") })},

		// Deletion.
		{"delete data", denied, remove(data("kept"))},
		{"delete a foreign Secret", denied, remove(foreign("others", "registry"))},
		{"delete as a dry run", denied, remove(foreign("others", "registry"), client.DryRunAll)},
		{"delete collection of Secrets", denied, func(ctx context.Context, k client.Client) error {
			return k.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("others"))
		}},
		{"delete collection of our Secrets", denied, func(ctx context.Context, k client.Client) error {
			return k.DeleteAllOf(ctx, &corev1.Secret{}, client.InNamespace("tenant"), client.MatchingLabels{"cluster.x-k8s.io/cluster-name": "c"})
		}},

		// ConfigMaps.
		{"create a ConfigMap", denied, create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "x"}})},
		{"lock with another key", denied, create(lock("c6", func(c *corev1.ConfigMap) { c.Data["x"] = "y" }))},
		{"lock with binary data", denied, create(lock("c6", func(c *corev1.ConfigMap) { c.BinaryData = map[string][]byte{"x": nil} }))},
		{"lock of another cluster", denied, create(lock("c6", func(c *corev1.ConfigMap) { c.Name = "x-lock" }))},
		{"change of a lock", denied, patch(lock("second"), types.MergePatchType, `{"data":{"lock-information":"x"}}`)},
		{"change of CoreDNS", denied, patch(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}}, types.MergePatchType, `{"data":{"Corefile":"x"}}`)},
		{"deletion of CoreDNS", denied, remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}})},
		{"deletion of a ConfigMap that is called app-lock", denied, remove(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "app-lock"}})},
		{"delete collection of ConfigMaps", denied, func(ctx context.Context, k client.Client) error {
			return k.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace("kube-system"))
		}},

		// Plugin objects.
		{"plugin object: its spec", denied, patch(sysctl("shared"), types.MergePatchType, `{"spec":{"profiles":null}}`)},
		{"plugin object: its labels", denied, patch(sysctl("shared"), types.MergePatchType, `{"metadata":{"labels":{"a":"b"}}}`)},
		{"plugin object: a finalizer", denied, patch(sysctl("shared"), types.MergePatchType, `{"metadata":{"finalizers":["a.example.com/b"]}}`)},
		{"plugin object: creation", denied, create(sysctl("new"))},
		{"plugin object: deletion", denied, remove(sysctl("shared"))},
		{"plugin object: delete collection", denied, func(ctx context.Context, k client.Client) error {
			return k.DeleteAllOf(ctx, sysctl(""), client.InNamespace("tenant"))
		}},
	}
	before := r.snapshot(t, "others") + r.snapshot(t, "kube-system")
	for _, a := range all {
		t.Run(a.name, func(t *testing.T) {
			err := a.try(t.Context(), k)
			require.Equal(t, a.want, of(err), "%v", err)
		})
	}
	require.Equal(t, before, r.snapshot(t, "others")+r.snapshot(t, "kube-system"), "nothing of others has changed")

	// clusterctl can put the manager into another namespace; accounts of others are not bound.
	for user, want := range map[string]outcome{
		"system:serviceaccount:renamed:machineadm-manager":      denied,
		"system:serviceaccount:others:other-machineadm-manager": allowed,
		"system:serviceaccount:others:capi-manager":             allowed,
	} {
		err := r.as(t, user).Create(t.Context(), foreign("tenant", "user-"+strings.ReplaceAll(user, ":", "-")))
		require.Equal(t, want, of(err), "%s: %v", user, err)
	}
	// Another provider of today updates a Secret that has the name of its config, such as CLUSTER-machineadm.
	overwrite := key("mine", func(s *corev1.Secret) { s.Type, s.Immutable = "cluster.x-k8s.io/secret", nil })
	require.Equal(t, invalid, of(r.as(t, "system:serviceaccount:others:capi-manager").Update(t.Context(), overwrite)))
}
