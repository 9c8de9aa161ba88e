package tenant

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	needs "github.com/machineadm/machineadm/internal/require"
)

// TestAuthors: who may not read the Secrets of a namespace writes nothing there that refers to them.
func TestAuthors(t *testing.T) {
	r := begin(t)
	role := func(user, secrets string) string {
		return strings.NewReplacer("USER", user, "SECRETS", secrets).Replace(`
{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: USER, namespace: tenant}, rules: [
 {apiGroups: [bootstrap.cluster.x-k8s.io, machineadm.cluster.x-k8s.io], resources: ["*"], verbs: ["*"]} SECRETS]}
---
{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: USER, namespace: tenant}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: USER}, subjects: [{kind: User, name: USER, apiGroup: rbac.authorization.k8s.io}]}
---
`)
	}
	r.Install(t, []byte(role("none", "")+role("lists", `, {apiGroups: [""], resources: [secrets], verbs: [list]}`)+
		role("one", `, {apiGroups: [""], resources: [secrets], resourceNames: [x], verbs: [get]}`)+
		role("reader", `, {apiGroups: [""], resources: [secrets], verbs: [get]}`)))
	config := func(name string) *unstructured.Unstructured {
		o := sysctl(name)
		o.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1alpha1")
		o.SetKind("MachineBootstrapConfig")
		o.Object["spec"] = map[string]any{"documents": []any{map[string]any{"apiVersion": "a/v1", "kind": "K", "name": "n"}}, "format": map[string]any{"type": "plain"}}
		return o
	}
	is := func(want outcome, err error, what string) {
		t.Helper()
		got := allowed
		if err != nil {
			got = outcome("error: " + err.Error())
			if strings.Contains(err.Error(), "machineadm-system-authors") {
				got = denied
			}
		}
		require.Equal(t, want, got, what)
	}
	none, reader := r.as(t, "none"), r.as(t, "reader")
	require.Eventually(t, func() bool { return none.Create(t.Context(), config("probe"), client.DryRunAll) != nil }, needs.Timeout(time.Minute), 50*time.Millisecond)
	is(denied, none.Create(t.Context(), config("a")), "config by a user without Secrets")
	is(denied, none.Create(t.Context(), sysctl("a")), "plugin object by a user without Secrets")
	storage := config("a")
	storage.SetKind("MachineBootstrapStorage")
	storage.Object["spec"] = map[string]any{"server": map[string]any{}}
	is(denied, none.Create(t.Context(), storage), "storage by a user without Secrets")
	claim := config("a")
	claim.SetKind("MachineBootstrapDataClaim")
	claim.Object["spec"] = map[string]any{
		"storageRef": map[string]any{"apiGroup": "storage.example.com", "kind": "Directory", "name": "d"}, "secretName": "of-another", "sha256": strings.Repeat("0", 64),
	}
	is(denied, none.Create(t.Context(), claim), "claim by a user without Secrets: its controller would store a Secret for that user")
	is(denied, r.as(t, "one").Create(t.Context(), config("a")), "config by a user who may get one Secret")
	is(denied, r.as(t, "lists").Create(t.Context(), config("a")), "config by a user who may list Secrets, and not get them")
	is(allowed, reader.Create(t.Context(), config("a")), "config by a user who may get Secrets")
	is(allowed, r.as(t, "system:serviceaccount:others:capi-manager").Create(t.Context(), sysctl("a")), "a controller with rights on Secrets")
	is(denied, none.Patch(t.Context(), config("a"), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"format":{"type":"cloudConfig"}}}`))), "another spec by a user without Secrets")
	is(denied, none.Patch(t.Context(), config("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":[{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","name":"m","uid":"u","controller":true}]}}`))), "another owner by a user without Secrets")
	is(allowed, none.Patch(t.Context(), config("a"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))), "another label by a user without Secrets")
	is(allowed, none.Delete(t.Context(), config("a")), "deletion by a user without Secrets")
}
