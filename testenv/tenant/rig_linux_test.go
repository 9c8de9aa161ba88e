package tenant

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	suffix  = "-machineadm-data"
	keyType = corev1.SecretType("machineadm.cluster.x-k8s.io/cluster-key")
)

type change func(*corev1.Secret)

func data(config string, changes ...change) *corev1.Secret {
	yes := true
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: config + suffix, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "c"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "bootstrap.cluster.x-k8s.io/v1alpha1", Kind: "MachineBootstrapConfig", Name: config, UID: "u", Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Type: "cluster.x-k8s.io/secret", Data: map[string][]byte{"value": []byte("v"), "format": []byte("plain")},
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func ofCluster(cluster, ending string, kind corev1.SecretType, values map[string]string, changes ...change) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: cluster + ending, Labels: map[string]string{"cluster.x-k8s.io/cluster-name": cluster},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: cluster, UID: "u"}},
		},
		Type: kind, Data: map[string][]byte{},
	}
	for k, v := range values {
		s.Data[k] = []byte(v)
	}
	for _, c := range changes {
		c(s)
	}
	return s
}

func immutable(s *corev1.Secret) { yes := true; s.Immutable = &yes }

func key(cluster string, changes ...change) *corev1.Secret {
	return ofCluster(cluster, "-machineadm", keyType, map[string]string{"value": strings.Repeat("k", 32)}, append([]change{immutable}, changes...)...)
}

func authority(cluster, ending string, changes ...change) *corev1.Secret {
	return ofCluster(cluster, ending, "cluster.x-k8s.io/secret", map[string]string{"tls.crt": "c", "tls.key": "k"}, changes...)
}

// server is the authority of the manager's endpoint.
func server(changes ...change) *corev1.Secret {
	yes := true
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "machineadm-system", Name: "machineadm-server-authority"}, Immutable: &yes,
		Type: "machineadm.cluster.x-k8s.io/server-authority", Data: map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")},
	}
	for _, change := range changes {
		change(s)
	}
	return s
}

func named(name string) change { return func(s *corev1.Secret) { s.Name = name } }

// foreign is a Secret of another program.
func foreign(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{"value": []byte("theirs")}}
}

type rig struct {
	*management.Cluster
	admin client.WithWatch
}

// begin starts an API server with our kinds and policies, and with accounts that have every right that RBAC can give.
func begin(t *testing.T) *rig {
	t.Helper()
	c := management.Start(t)
	r := &rig{c, c.Client(t)}
	root, err := tools.Root(".")
	require.NoError(t, err)
	objects, err := management.Objects(management.Render(t, root+"/host/controller/config/default"))
	require.NoError(t, err)
	kinds := []string{"Namespace", "CustomResourceDefinition", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}
	manifests := []byte(accounts)
	for _, o := range objects {
		if slices.Contains(kinds, o.GetKind()) {
			text, err := o.MarshalJSON()
			require.NoError(t, err)
			manifests = append(append(manifests, "\n---\n"...), text...)
		}
	}
	c.Install(t, manifests)
	return r
}

const accounts = `
{apiVersion: v1, kind: Namespace, metadata: {name: tenant}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: others}}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: wide}, rules: [
 {apiGroups: [""], resources: ["secrets", "configmaps"], verbs: ["*"]},
 {apiGroups: ["machineadm.cluster.x-k8s.io"], resources: ["*"], verbs: ["*"]}]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: wide}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: wide}, subjects: [
 {kind: ServiceAccount, name: machineadm-manager, namespace: machineadm-system}, {kind: ServiceAccount, name: machineadm-manager, namespace: renamed},
 {kind: ServiceAccount, name: other-machineadm-manager, namespace: others}, {kind: ServiceAccount, name: capi-manager, namespace: others}]}
`

// awaitPolicies waits until the API server enforces the policies, which takes it a second or two.
func (r *rig) awaitPolicies(t *testing.T, k client.Client) {
	t.Helper()
	probes := []client.Object{
		foreign("tenant", "probe"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "tenant", Name: "probe"}}, sysctl("probe"),
	}
	for _, o := range probes {
		require.Eventually(t, func() bool { return refused(k.Create(t.Context(), o, client.DryRunAll)) }, needs.Timeout(time.Minute), 20*time.Millisecond)
	}
}

func (r *rig) as(t *testing.T, user string) client.Client {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", r.User(t, user, "system:serviceaccounts"))
	require.NoError(t, err)
	config.QPS = -1
	k, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	require.NoError(t, err)
	return k
}

// refused says whether a policy, and not a role, has refused a request.
func refused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'machineadm-system-manager-")
}

func sysctl(name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"profiles": []any{"kubernetes"}}}}
	o.SetAPIVersion("machineadm.cluster.x-k8s.io/v1alpha1")
	o.SetKind("Sysctl")
	o.SetNamespace("tenant")
	o.SetName(name)
	return o
}

func lock(name string, changes ...func(*corev1.ConfigMap)) *corev1.ConfigMap {
	c := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "tenant", Name: name + "-lock",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Cluster", Name: name, UID: "u"}},
		},
		Data: map[string]string{"lock-information": "{}"},
	}
	for _, f := range changes {
		f(c)
	}
	return c
}

type outcome string

const (
	allowed outcome = "allowed"
	denied  outcome = "denied by the policy"
	invalid outcome = "refused by the API server itself"
)

func of(err error) outcome {
	switch {
	case err == nil:
		return allowed
	case refused(err):
		return denied
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return invalid
	}
	return outcome("error: " + err.Error())
}

type attempt struct {
	name string
	want outcome
	try  func(context.Context, client.Client) error
}

func create(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, k client.Client) error { return k.Create(ctx, o) }
}

func patch(o client.Object, kind types.PatchType, text string) func(context.Context, client.Client) error {
	return func(ctx context.Context, k client.Client) error {
		return k.Patch(ctx, o, client.RawPatch(kind, []byte(text)))
	}
}

func apply(o client.Object) func(context.Context, client.Client) error {
	return func(ctx context.Context, k client.Client) error {
		gvk, err := k.GroupVersionKindFor(o)
		if err != nil {
			return err
		}
		o.GetObjectKind().SetGroupVersionKind(gvk)
		return k.Patch(ctx, o, client.Apply, client.FieldOwner("machineadm-manager"), client.ForceOwnership) //nolint:staticcheck // a typed object has no apply configuration
	}
}

func put(o *corev1.Secret, f change) func(context.Context, client.Client) error {
	return func(ctx context.Context, k client.Client) error {
		var s corev1.Secret
		if err := k.Get(ctx, client.ObjectKeyFromObject(o), &s); err != nil {
			return err
		}
		f(&s)
		return k.Update(ctx, &s)
	}
}

func remove(o client.Object, options ...client.DeleteOption) func(context.Context, client.Client) error {
	return func(ctx context.Context, k client.Client) error { return k.Delete(ctx, o, options...) }
}

// snapshot is what a namespace has of Secrets and ConfigMaps.
func (r *rig) snapshot(t *testing.T, namespace string) string {
	t.Helper()
	var secrets corev1.SecretList
	require.NoError(t, r.admin.List(t.Context(), &secrets, client.InNamespace(namespace)))
	var maps corev1.ConfigMapList
	require.NoError(t, r.admin.List(t.Context(), &maps, client.InNamespace(namespace)))
	text := ""
	for i := range secrets.Items {
		text += secrets.Items[i].Name + "@" + secrets.Items[i].ResourceVersion + " "
	}
	for i := range maps.Items {
		text += maps.Items[i].Name + "@" + maps.Items[i].ResourceVersion + " "
	}
	return text
}
