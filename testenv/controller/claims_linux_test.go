package controller

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/tools"
)

// claims: testenv/outside/claims, the controller of a storage of others, stores documents in a directory, and a machine gets a reference to them.
func (r *rig) claims(t *testing.T) {
	manifests, err := os.ReadFile("../outside/claims/claims.yaml")
	require.NoError(t, err)
	r.Install(t, manifests)
	r.put(t, made("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "claims", map[string]any{
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "claims"},
		"subjects": []any{map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "claims"}},
	}))
	built, directory := t.TempDir(), t.TempDir()
	require.NoError(t, tools.Products(t.Context(), built, map[string]string{"claims": "testenv/outside/claims"}))

	r.machine(t, "light", "claiming", claiming())
	r.condition(t, bootstrap.ConditionReady, "Unknown", "DataStored: MachineBootstrapDataClaim claiming waits for the controller of Directory files", "claiming")
	stranger := &bootstrap.MachineBootstrapDataClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "occupied"},
		Spec: bootstrap.MachineBootstrapDataClaimSpec{
			StorageRef: bootstrap.StorageReference{APIGroup: "other.example.com", Kind: "Other", Name: "o"}, SecretName: "claiming" + dataSuffix, SHA256: strings.Repeat("0", 64),
		},
	}
	require.NoError(t, r.Create(t.Context(), stranger))
	r.machine(t, "light", "occupied", claiming())
	r.condition(t, bootstrap.ConditionReady, "False", "DataStored: MachineBootstrapDataClaim occupied belongs to something else: delete it", "occupied")

	controller := r.Run(t, r.User(t, "claims"), filepath.Join(built, "claims"))
	r.condition(t, bootstrap.ConditionDataStored, "Unknown", "is not ready: NoStorage Directory files does not exist: create it", "claiming")
	require.NotContains(t, r.data(t, r.namespace, "claiming").Data, "value")
	r.put(t, made("storage.example.com/v1", "Directory", "files", map[string]any{"spec": map[string]any{"path": directory, "url": "https://files.example.com/"}}))
	spec := r.stocked(t, "claiming", directory)
	require.NotContains(t, string(r.data(t, r.namespace, "claiming").Data["value"]), storedSecret)
	require.True(t, strings.HasPrefix(spec.URI, "https://files.example.com/"), spec.URI)
	require.NoError(t, r.Delete(t.Context(), stranger))
	r.stocked(t, "occupied", directory)
	changed := r.Patch(t.Context(), r.claimOf("claiming"), merge(`{"spec":{"secretName":"other"}}`))
	require.ErrorContains(t, changed, "the spec cannot be changed")

	// What the controller hands out anew replaces what the machine was to have.
	handed := r.secret(t, r.namespace, "claiming-directory")
	handed.Data["value"] = []byte(strings.Replace(string(handed.Data["value"]), spec.URI, spec.URI+"?renewed", 1))
	require.NoError(t, r.Update(t.Context(), handed))
	r.refers(t, "claiming", spec.URI+"?renewed")

	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "claiming"}}
	require.NoError(t, r.Status().Patch(t.Context(), machine, merge(`{"status":{"nodeRef":{"name":"claiming"}}}`)))
	r.condition(t, bootstrap.ConditionDataStored, "True", "the machine has joined", "claiming")
	r.unclaimed(t, "claiming")
	require.NotContains(t, r.data(t, r.namespace, "claiming").Data, "documents")
	r.discard(t, "occupied")
	r.unclaimed(t, "occupied")
	left, err := os.ReadDir(directory)
	require.NoError(t, err)
	require.Empty(t, left)
	controller.Stop(t)
	t.Run("forged", r.forged)
}

// claiming is the spec of a config whose documents are in a storage of others.
func claiming() map[string]any {
	spec := referringTo("files")
	spec["storageRef"] = map[string]any{"apiGroup": "storage.example.com", "kind": "Directory", "name": "files"}
	return spec
}

func (r *rig) claimOf(config string) *bootstrap.MachineBootstrapDataClaim {
	return &bootstrap.MachineBootstrapDataClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: config}}
}

// stocked waits for the data of a config, and compares the file with the documents and their digest.
func (r *rig) stocked(t *testing.T, config, directory string) contract.RemoteConfigSpec {
	t.Helper()
	r.condition(t, bootstrap.ConditionDataStored, "True", "", config)
	r.condition(t, bootstrap.ConditionReady, "True", "", config)
	data := r.data(t, r.namespace, config)
	spec := remoteConfig(t, data)
	file, err := os.ReadFile(filepath.Join(directory, objectName(spec)))
	require.NoError(t, err)
	require.Equal(t, string(data.Data["documents"]), string(file))
	checkObject(t, spec, file)
	return spec
}

// refers waits until the data of a config refers to a location.
func (r *rig) refers(t *testing.T, config, uri string) {
	t.Helper()
	var secrets corev1.SecretList
	management.Await(t, r, limit, &secrets, func() error {
		if len(secrets.Items) != 1 || !strings.Contains(string(secrets.Items[0].Data["value"]), uri) {
			return fmt.Errorf("the data of %s does not refer to %s", config, uri)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": config + dataSuffix})
}

// unclaimed waits until the claim of a config is gone.
func (r *rig) unclaimed(t *testing.T, config string) {
	t.Helper()
	var claims bootstrap.MachineBootstrapDataClaimList
	management.Await(t, r, limit, &claims, func() error {
		if len(claims.Items) > 0 {
			return fmt.Errorf("the claim %s is there, with %v", config, claims.Items[0].Finalizers)
		}
		return nil
	}, client.InNamespace(r.namespace), client.MatchingFields{"metadata.name": config})
}

// forged: a result that does not belong to the claim gives no data, and its condition says why. The test is the controller.
func (r *rig) forged(t *testing.T) {
	r.machine(t, "light", "forged", claiming())
	r.condition(t, bootstrap.ConditionDataStored, "Unknown", "waits for the controller", "forged")
	report := func(status, secretName string) {
		t.Helper()
		require.NoError(t, r.Status().Patch(t.Context(), r.claimOf("forged"), merge(fmt.Sprintf(
			`{"status":{"observedGeneration":1,"secretName":%q,"conditions":[{"type":"Ready","status":%q,"reason":"Test","message":"for a disk","lastTransitionTime":%q}]}}`,
			secretName, status, time.Now().UTC().Format(time.RFC3339)))))
	}
	is := func(status metav1.ConditionStatus, text string) {
		t.Helper()
		r.condition(t, bootstrap.ConditionReady, status, "DataStored: MachineBootstrapDataClaim forged "+text, "forged")
	}
	report("False", "stored-password")
	is("Unknown", "is not ready: Test for a disk")
	report("True", "absent")
	is("Unknown", "names Secret absent, which does not exist")
	report("True", "stored-password")
	is("False", "names Secret stored-password, which it does not control")
	claim := r.claimOf("forged")
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(claim), claim))
	hand := func(value string) {
		t.Helper()
		result := secret("forged-result", map[string]string{"value": value})
		result.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(claim, bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapDataClaim))})
		r.put(t, result)
	}
	hand("x: [")
	report("True", "forged-result")
	is("False", "has a result that a machine cannot use: Secret/forged-result")
	const begin = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: "
	one := begin + "{provider: http, uri: 'https://files.example.com/x', providerConfig: {bearer: {value: " + storedSecret + "}}"
	for _, c := range []struct{ value, text string }{
		{one + "}\n---\n" + strings.Replace(begin, "name: a", "name: b", 1) + "{provider: http, uri: 'https://b'}\n", "its key value must be one RemoteConfig"},
		{"apiVersion: a/v1\nkind: RemoteConfig\nmetadata: {name: a}\nspec: {}\n", "its key value must be one RemoteConfig"},
		{begin + "{provider: http}\n", "must have provider and uri"},
		{one + ", other: " + storedSecret + "}\n", "has a field of another name or type"},
		{one + ", sha256: '" + strings.Repeat("0", 64) + "'}\n", "spec.sha256: differs from the digest in the claim"},
	} {
		hand(c.value)
		is("False", "has a result that a machine cannot use: Secret/forged-result: ")
		r.condition(t, bootstrap.ConditionDataStored, "False", c.text, "forged")
	}
	require.NotContains(t, r.data(t, r.namespace, "forged").Data, "value")
	hand(one + "}\n")
	r.condition(t, bootstrap.ConditionReady, "True", "", "forged")
	data := r.data(t, r.namespace, "forged")
	checkObject(t, remoteConfig(t, data), data.Data["documents"])
	r.discard(t, "forged")
	r.unclaimed(t, "forged")
}
