package controller

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

const strangers = "example.com/v1"

// foreign: a kind of another project, whose controller the test is. The configs are there before the kind is.
func (r *rig) foreign(t *testing.T) {
	refer := func(kind string) []any {
		return []any{map[string]any{"apiGroup": "example.com", "kind": kind, "name": "proxy", "after": []any{"Sysctl"}}}
	}
	local := []any{
		map[string]any{"apiVersion": contract.APIVersion, "kind": contract.KindContainerRuntime, "name": "containerd", "spec": map[string]any{"provider": "containerd", "cgroupDriver": "systemd"}},
		map[string]any{"apiVersion": contract.APIVersion, "kind": contract.KindSysctl, "name": "s", "spec": map[string]any{"profiles": []any{"kubernetes"}}},
	}
	plain := map[string]any{"type": "plain"}
	r.machine(t, "light", "proxied", map[string]any{"pluginRefs": refer("HTTPProxy"), "documents": local, "format": plain})
	r.machine(t, "light", "cloned", map[string]any{"pluginTemplateRefs": refer("HTTPProxyTemplate"), "documents": local, "format": plain})
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "no kind HTTPProxy of group example.com is installed", "proxied")
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "no kind HTTPProxyTemplate of group example.com is installed", "cloned")

	r.apply(t, "httpproxy.yaml")
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "the objects of HTTPProxy.example.com cannot be listed", "proxied")
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "the objects of HTTPProxyTemplate.example.com cannot be listed", "cloned")
	r.put(t, aggregated("example-httpproxies", "example.com", "httpproxies", "httpproxytemplates"))
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "HTTPProxy proxy does not exist in namespace default: create it", "proxied")
	r.put(t, made(strangers, "HTTPProxy", "proxy", map[string]any{"spec": map[string]any{"url": "http://proxy.example.com"}}))
	r.reported(t, "proxied", "proxy")
	require.Equal(t, []string{"Sysctl/s", "HTTPProxy/proxy", "ContainerRuntime/containerd"}, r.order(t, "proxied"))

	template := made(strangers, "HTTPProxyTemplate", "proxy", map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"url": "http://clone.example.com"}}},
	})
	r.put(t, template)
	clone := r.clone(t, "cloned", "http://clone.example.com")
	require.NoError(t, r.Get(t.Context(), client.ObjectKeyFromObject(template), template))
	require.Equal(t, "Cluster", template.GetOwnerReferences()[0].Kind)
	r.retarget(t, template, "http://changed.example.com")
	require.Equal(t, clone.GetName(), r.clone(t, "cloned", "http://changed.example.com").GetName())
	r.reported(t, "cloned", clone.GetName())
	r.retarget(t, template, "http://late.example.com")
	r.condition(t, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, "HTTPProxyTemplate.example.com/proxy", "cloned")
	r.clone(t, "cloned", "http://changed.example.com")

	r.discard(t, "cloned")
	r.gone(t, clone)
}

// aggregated is a role with which an author of a kind lets the manager use it.
func aggregated(name, group string, resources ...string) *unstructured.Unstructured {
	all := make([]any, len(resources))
	for i := range resources {
		all[i] = resources[i]
	}
	role := made("rbac.authorization.k8s.io/v1", "ClusterRole", name, map[string]any{"rules": []any{map[string]any{
		"apiGroups": []any{group}, "resources": all, "verbs": []any{"get", "list", "watch", "create", "patch", "delete"},
	}}})
	role.SetLabels(map[string]string{"machineadm.cluster.x-k8s.io/aggregate-to-manager": "true"})
	return role
}

// reported plays the controller of an HTTPProxy, step by step, until the config has its data.
func (r *rig) reported(t *testing.T, config, name string) {
	t.Helper()
	o := made(strangers, "HTTPProxy", name, map[string]any{})
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, o))
	generation := o.GetGeneration()
	report := func(status, secretName string) {
		o := made(strangers, "HTTPProxy", name, map[string]any{})
		o.SetNamespace("default")
		require.NoError(t, r.Status().Patch(t.Context(), o, merge(fmt.Sprintf(`{"status":{"observedGeneration":%d,"secretName":%q,
			"beforePlugins":["ContainerRuntime"],"afterPlugins":["Timesync"],"conditions":[{"type":"Ready","status":%q,"reason":"Asking","message":"for an address"}]}}`,
			generation, secretName, status))))
	}
	waits := func(status metav1.ConditionStatus, text string) {
		t.Helper()
		r.condition(t, bootstrap.ConditionReady, status, "HTTPProxy "+name+text, config)
	}
	waits("Unknown", " has changed, and its controller has not seen it yet")
	report("False", "")
	waits("Unknown", " is not ready: Asking for an address")
	report("True", "")
	waits("Unknown", " is ready, but its status names no secretName")
	report("True", config+"-proxy")
	waits("Unknown", ": Secret "+config+"-proxy does not exist in namespace default: create it")
	r.put(t, secret(config+"-proxy", map[string]string{"other": secretValue}))
	waits("False", ": Secret "+config+"-proxy has no key value: add it")
	r.put(t, secret(config+"-proxy", map[string]string{"value": secretValue + ": ["}))
	waits("False", ": Secret/"+config+"-proxy")
	r.put(t, secret(config+"-proxy", map[string]string{
		"value": "apiVersion: example.com/v1\nkind: HTTPProxy\nmetadata: {name: proxy}\nspec: {password: {value: " + secretValue + "}}\n",
	}))
	require.Contains(t, string(r.awaitData(t, config).Data["value"]), secretValue)
	r.condition(t, bootstrap.ConditionReady, metav1.ConditionTrue, "", config) // the status is written after the data
	var c bootstrap.MachineBootstrapConfig
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: config}, &c))
	require.Len(t, c.Status.Plugins, 1)
	require.Equal(t, config+"-proxy", c.Status.Plugins[0].SecretName)
	certificates := meta.FindStatusCondition(c.Status.Conditions, bootstrap.ConditionCertificatesAvailable)
	require.Equal(t, bootstrap.ReasonNotNeeded, certificates.Reason, "no document is a KubernetesNode")
}

// order is the order of the documents in the data, KIND/NAME.
func (r *rig) order(t *testing.T, config string) []string {
	t.Helper()
	stream, err := document.Decode(config, bytes.NewReader(r.data(t, "default", config).Data["value"]))
	require.NoError(t, err)
	require.Empty(t, stream.Errors)
	var all []string
	for _, d := range stream.Documents {
		all = append(all, d.Kind+"/"+d.Name)
	}
	return all
}

// retarget changes the address in the template.
func (r *rig) retarget(t *testing.T, template *unstructured.Unstructured, url string) {
	t.Helper()
	require.NoError(t, r.Patch(t.Context(), template, merge(`{"spec":{"template":{"spec":{"url":"`+url+`"}}}}`)))
}

// clone waits for the HTTPProxy that belongs to a config and has the address.
func (r *rig) clone(t *testing.T, config, url string) *unstructured.Unstructured {
	t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "HTTPProxyList"})
	var found *unstructured.Unstructured
	management.Await(t, r, soon, &list, func() error {
		for i := range list.Items {
			owner := metav1.GetControllerOf(&list.Items[i])
			has, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "url") // none is another one
			if owner != nil && owner.Kind == bootstrap.KindMachineBootstrapConfig && owner.Name == config && has == url {
				found = &list.Items[i]
				return nil
			}
		}
		var c bootstrap.MachineBootstrapConfig
		if err := r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: config}, &c); err != nil {
			return err
		}
		return fmt.Errorf("no HTTPProxy with %s belongs to %s: %w", url, config, &unfinished{0, 1, []bootstrap.MachineBootstrapConfig{c}})
	})
	return found
}

// discard deletes a config.
func (r *rig) discard(t *testing.T, config string) {
	t.Helper()
	c := made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapConfig, config, map[string]any{})
	c.SetNamespace(r.namespace)
	require.NoError(t, r.Delete(t.Context(), c))
}

// gone waits until an object is not there. The garbage collector finds new kinds within 30 seconds.
func (r *rig) gone(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(o.GroupVersionKind().GroupVersion().WithKind(o.GetKind() + "List"))
	management.Await(t, r, 3*soon, &list, func() error {
		if meta.LenList(&list) > 0 {
			return fmt.Errorf("%s %s is still there", o.GetKind(), o.GetName())
		}
		return nil
	}, client.InNamespace("default"), client.MatchingFields{"metadata.name": o.GetName()})
}
