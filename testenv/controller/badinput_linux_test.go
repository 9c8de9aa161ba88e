package controller

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// canary is part of every secret value of the tests, of which secretValue is one. No message has it.
const (
	canary      = "c4n4ry"
	secretValue = canary + "-of-a-secret"
)

// badInput is a case of testdata/badinput.yaml.
type badInput struct {
	Name string
	// Cluster is the machine's, made for the case; by default light.
	Cluster string
	// ControlPlane is the reference of the cluster to its control plane, if it is not a KubeadmControlPlane of Given.
	ControlPlane map[string]any
	// Given are objects that are there before the config, and Missing those that are not.
	Given, Missing []map[string]any
	Spec           map[string]any
	// Ready is the status and the reason, and Message parts of the message.
	Ready   string
	Message []string
	// Corrected, Deleted, Becomes and Version correct the input: objects, objects, the config's spec and the Machine's version.
	Corrected, Deleted []map[string]any
	Becomes            map[string]any
	Version            string
}

func badInputs(t *testing.T, r *rig) []badInput {
	t.Helper()
	text, err := os.ReadFile("testdata/badinput.yaml")
	require.NoError(t, err)
	blob := make([]byte, 150<<10)
	_, _ = rand.Read(blob) // it never fails
	variables := map[string]string{
		"CANARY": secretValue, "BLOB": base64.StdEncoding.EncodeToString(blob),
		"CA": strings.ReplaceAll(string(r.ca.Certificate), "\n", `\n`),
	}
	var all []badInput
	data, err := yaml.ToJSON([]byte(os.Expand(string(text), func(name string) string { return variables[name] })))
	require.NoError(t, err)
	strict := json.NewDecoder(bytes.NewReader(data))
	strict.DisallowUnknownFields()
	require.NoError(t, strict.Decode(&all))
	return all
}

// badInput: the config says what is missing or not valid, by the object and the field, with the remedy and without any value.
// When the input is corrected, the data is there soon.
func (r *rig) badInput(t *testing.T) {
	for _, c := range badInputs(t, r) {
		t.Run(c.Name, func(t *testing.T) {
			if c.Cluster == "" {
				c.Cluster = "light"
			} else {
				r.joined(t, c.Cluster)
			}
			r.putAll(t, c.Given)
			r.deleteAll(t, c.Missing)
			r.follow(t, &c)
			r.machine(t, c.Cluster, c.Name, c.Spec)
			r.refuses(t, &c)

			r.putAll(t, c.Corrected)
			r.deleteAll(t, c.Deleted)
			if c.Becomes != nil {
				r.respecify(t, c.Name, c.Becomes)
			}
			if c.Version != "" {
				m := &clusterv1.Machine{}
				m.Namespace, m.Name = "default", c.Name
				require.NoError(t, r.Patch(t.Context(), m, merge(`{"spec":{"version":"`+c.Version+`"}}`)))
			}
			r.awaitData(t, c.Name)
		})
	}
}

// joined makes a cluster to which the manager is connected: the connection starts a reconciliation of all its configs, which
// must differ from the correction's.
func (r *rig) joined(t *testing.T, cluster string) {
	t.Helper()
	r.cluster(t, cluster)
	r.machine(t, cluster, cluster+"-first", map[string]any{"documents": []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindKubernetesNode, "name": "node", "spec": map[string]any{"provider": "kubeadm"},
	}}})
	r.awaitData(t, cluster+"-first")
}

// refuses waits for the condition of a case.
func (r *rig) refuses(t *testing.T, c *badInput) {
	t.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	var message string
	management.Await(t, r, soon, &configs, func() error {
		if len(configs.Items) == 0 {
			return fmt.Errorf("%s is not there", c.Name)
		}
		ready := meta.FindStatusCondition(configs.Items[0].Status.Conditions, bootstrap.ConditionReady)
		if ready == nil || string(ready.Status)+" "+ready.Reason != c.Ready {
			return fmt.Errorf("Ready is %+v, not %s", ready, c.Ready)
		}
		message = ready.Message
		return nil
	}, client.InNamespace("default"), client.MatchingFields{"metadata.name": c.Name})
	for _, part := range c.Message {
		assert.Contains(t, message, part)
	}
	assert.NotContains(t, message, canary)
	assert.Less(t, len(message), 1000)
}

// follow makes the control plane of a case that of its cluster.
func (r *rig) follow(t *testing.T, c *badInput) {
	t.Helper()
	for _, o := range c.Given {
		if o["kind"] == "KubeadmControlPlane" {
			c.ControlPlane = map[string]any{"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane", "name": c.Cluster}
		}
	}
	if c.ControlPlane != nil {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"controlPlaneRef": c.ControlPlane}})
		require.NoError(t, err)
		require.NoError(t, r.Patch(t.Context(), &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: c.Cluster}}, merge(string(patch))))
	}
}

// respecify replaces the spec of a config.
func (r *rig) respecify(t *testing.T, name string, spec map[string]any) {
	t.Helper()
	patch, err := json.Marshal([]any{map[string]any{"op": "replace", "path": "/spec", "value": spec}})
	require.NoError(t, err)
	require.NoError(t, r.Patch(t.Context(), config(name), client.RawPatch("application/json-patch+json", patch)))
}

func (r *rig) putAll(t *testing.T, objects []map[string]any) {
	t.Helper()
	for _, o := range objects {
		r.put(t, &unstructured.Unstructured{Object: o})
	}
}

func (r *rig) deleteAll(t *testing.T, objects []map[string]any) {
	t.Helper()
	for _, o := range objects {
		deleted := &unstructured.Unstructured{Object: o}
		deleted.SetNamespace("default")
		require.NoError(t, r.Delete(t.Context(), deleted))
	}
}
