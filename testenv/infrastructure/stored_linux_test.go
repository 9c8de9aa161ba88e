package infrastructure

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
)

// TestStored: machines fetch their documents from the manager, and what becomes of them is said in the management cluster, in the words of
// machineadm status. A health check of Cluster API replaces the one that has failed.
func TestStored(t *testing.T) {
	needs.Campaign(t)
	r := layout{machines: 3, serve: true}.start(t)
	objects, check := small(t), kind(t, example(t, "storage.yaml"), "MachineHealthCheck")
	store(t, objects)
	r.apply(t, objects...)
	for _, m := range r.running(t, 2) {
		r.prepared(t, m.Spec.InfrastructureRef.Name, 5)
		r.bootstrapped(t, m.Name, metav1.ConditionTrue, "Succeeded: 5 documents")
		r.unstored(t, m)
	}

	deployment, sysctl := find(t, objects, "MachineDeployment", "alone"), find(t, objects, "Sysctl", "kubernetes")
	wrong := sysctl.DeepCopy()
	set(t, wrong, map[string]any{"net.ipv4.no_such_key": "1"}, "spec", "parameters")
	set(t, deployment, int64(2), "spec", "replicas")
	r.apply(t, wrong, deployment)
	failed := r.withoutNode(t)
	line, _, _ := strings.Cut(r.failed(t, failed), "\n")
	require.Contains(t, line, "Failed at Sysctl/kubernetes while planning: RemoteConfig/")
	r.bootstrapped(t, r.machineOf(t, failed).Name, metav1.ConditionFalse, line)
	r.unready(t, failed, line)

	r.apply(t, sysctl, check)
	r.replaced(t, failed)
	for _, m := range r.running(t, 3) {
		r.bootstrapped(t, m.Name, metav1.ConditionTrue, "Succeeded: 5 documents")
	}
	r.deleted(t)
}

// bootstrapped waits until the config of a Machine has a condition of its bootstrap with the text.
func (r *rig) bootstrapped(t *testing.T, machine string, status metav1.ConditionStatus, text string) {
	t.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(t, r, limit, &configs, func() error {
		for i := range configs.Items {
			c := &configs.Items[i]
			if owner := metav1.GetControllerOf(c); owner == nil || owner.Name != machine {
				continue
			}
			have := meta.FindStatusCondition(c.Status.Conditions, bootstrap.ConditionBootstrapSucceeded)
			if have == nil || have.Status != status || !strings.Contains(have.Message, text) {
				return fmt.Errorf("%s of %s is %+v", bootstrap.ConditionBootstrapSucceeded, c.Name, have)
			}
			return nil
		}
		return fmt.Errorf("%s has no config", machine)
	})
}

// store makes configs refer to the storage of the examples, instead of sending reports elsewhere. The rig has made it.
func store(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	ref, _, err := unstructured.NestedMap(kind(t, example(t, "storage.yaml"), "MachineBootstrapConfigTemplate").Object, "spec", "template", "spec", "storageRef")
	require.NoError(t, err)
	storeIn(t, objects, ref)
}

// storeIn makes configs refer to a storage.
func storeIn(t *testing.T, objects []*unstructured.Unstructured, ref map[string]any) {
	t.Helper()
	for _, o := range objects {
		path := []string{"spec"}
		switch o.GetKind() {
		case bootstrap.KindMachineBootstrapConfig:
		case "MachineBootstrapConfigTemplate":
			path = []string{"spec", "template", "spec"}
		default:
			continue
		}
		set(t, o, ref, append(path, "storageRef")...)
		unstructured.RemoveNestedField(o.Object, append(path, "documents")...)
	}
}

// registered waits for a Machine with a node, and returns the name of the machine.
func (r *rig) registered(t *testing.T, of ...client.ListOption) (name string) {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		for i := range machines.Items {
			if m := &machines.Items[i]; m.Status.NodeRef.IsDefined() {
				name = m.Spec.InfrastructureRef.Name
				return nil
			}
		}
		return errors.New("no machine has a node")
	}, of...)
	return name
}

// unready waits until Cluster API says of a Machine why it is not ready.
func (r *rig) unready(t *testing.T, name, text string) {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		c := meta.FindStatusCondition(r.machineOf(t, name).Status.Conditions, clusterv1.MachineBootstrapConfigReadyCondition)
		if c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, text) {
			return fmt.Errorf("%s is %+v", clusterv1.MachineBootstrapConfigReadyCondition, c)
		}
		return nil
	})
}

// machineOf is the Machine that has a machine.
func (r *rig) machineOf(t *testing.T, name string) *clusterv1.Machine {
	t.Helper()
	var machines clusterv1.MachineList
	require.NoError(t, r.List(t.Context(), &machines))
	for i := range machines.Items {
		if machines.Items[i].Spec.InfrastructureRef.Name == name {
			return &machines.Items[i]
		}
	}
	require.Fail(t, "no Machine has "+name)
	return nil
}

// unstored: neither the Secret of a machine that has joined nor its user data has a document, a token or a key of the cluster.
func (r *rig) unstored(t *testing.T, m clusterv1.Machine) {
	t.Helper()
	var secrets corev1.SecretList
	management.Await(t, r, limit, &secrets, func() error {
		if len(secrets.Items) != 1 || len(secrets.Items[0].Data["documents"]) > 0 {
			return fmt.Errorf("the documents of %s are there", m.Name)
		}
		return nil
	}, client.InNamespace(m.Namespace), client.MatchingFields{"metadata.name": *m.Spec.Bootstrap.DataSecretName})
	said, err := r.Node(m.Spec.InfrastructureRef.Name).Exec(t.Context(), "cat", "/var/lib/cloud/instance/user-data.txt")
	require.NoError(t, err)
	assert.Contains(t, said.Stdout, "kind: RemoteConfig")
	for _, word := range []string{"KubernetesNode", "PRIVATE KEY", "token:"} {
		assert.NotContains(t, said.Stdout, word)
	}
}
