package infrastructure

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestExample: the examples as they are become three control planes and two workers.
func TestExample(t *testing.T) {
	r := start(t, 5)
	r.apply(t, example(t, "workers.yaml", "standalone.yaml")...)
	machines := r.running(t, 5)
	control := 0
	for _, m := range machines {
		if _, ok := m.Labels[clusterv1.MachineControlPlaneLabel]; ok {
			control++
		}
		r.prepared(t, m.Spec.InfrastructureRef.Name, 4)
	}
	assert.Equal(t, 3, control)
	r.deleted(t)
}

// TestChain is the same with one machine of each role. A third one stumbles over a mistake of the user and is replaced when that is
// corrected, and the power of its replacement is cut in its first run. Nothing is done on a machine.
//
//machineadm:core
func TestChain(t *testing.T) {
	r := start(t, 3)
	objects := small(t)
	deployment, sysctl := find(t, objects, "MachineDeployment", "alone"), find(t, objects, "Sysctl", "kubernetes")
	r.apply(t, objects...)
	for _, m := range r.running(t, 2) {
		r.prepared(t, m.Spec.InfrastructureRef.Name, 4)
		r.asWritten(t, m.Spec.InfrastructureRef.Name)
	}

	wrong := sysctl.DeepCopy()
	set(t, wrong, map[string]any{"net.ipv4.no_such_key": "1"}, "spec", "parameters")
	set(t, deployment, int64(2), "spec", "replicas")
	r.apply(t, wrong, deployment)
	failed := r.withoutNode(t)
	said := r.failed(t, failed)
	assert.Contains(t, said, `spec.parameters["net.ipv4.no_such_key"]`)
	assert.Contains(t, said, "remedy: ")

	check := find(t, example(t, "healthcheck.yaml"), "MachineHealthCheck", "alone")
	set(t, check, int64(30), "spec", "checks", "nodeStartupTimeoutSeconds") // the least that Cluster API accepts
	r.apply(t, sysctl, check)
	r.replaced(t, failed)
	require.NoError(t, r.Delete(t.Context(), check)) // the next one may be slow
	next := r.withoutNode(t)
	r.begun(t, next)
	r.PowerCut(t, next)
	for _, m := range r.running(t, 3) {
		r.prepared(t, m.Spec.InfrastructureRef.Name, 4)
	}
	r.deleted(t)
}

// TestNoProviderID: Cluster API never finds a node without a provider ID, and the config of the first control plane says that it has none.
func TestNoProviderID(t *testing.T) {
	needs.Campaign(t)
	r := start(t, 1)
	objects := small(t)
	unstructured.RemoveNestedField(find(t, objects, "KubernetesNode", "control-plane").Object, "spec", "node")
	r.apply(t, objects...)
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(t, r, limit, &configs, func() error {
		for i := range configs.Items {
			c := meta.FindStatusCondition(configs.Items[i].Status.Conditions, bootstrap.ConditionDataSecretAvailable)
			if c != nil && strings.Contains(c.Message, "the node has no provider ID") {
				return nil
			}
		}
		return errors.New("no config says it")
	})
	r.deleted(t)
}

// small is the Cluster of the examples with one control plane and one worker.
func small(t testing.TB) []*unstructured.Unstructured {
	t.Helper()
	objects := slices.DeleteFunc(example(t, "workers.yaml", "standalone.yaml"), func(o *unstructured.Unstructured) bool {
		return o.GetName() == "alone-1" || o.GetName() == "alone-2"
	})
	set(t, find(t, objects, "MachineDeployment", "alone"), int64(1), "spec", "replicas")
	return objects
}

// find returns an object of a list.
func find(t testing.TB, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(objects, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	require.GreaterOrEqual(t, i, 0, "%s %s", kind, name)
	return objects[i]
}

func set(t testing.TB, o *unstructured.Unstructured, value any, path ...string) {
	t.Helper()
	require.NoError(t, unstructured.SetNestedField(o.Object, value, path...))
}

// withoutNode waits for a machine that is on and has no node in its cluster, and returns its name.
func (r *rig) withoutNode(t *testing.T, of ...client.ListOption) (name string) {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		for i := range machines.Items {
			m := &machines.Items[i]
			if name = m.Spec.InfrastructureRef.Name; m.DeletionTimestamp == nil && m.Spec.ProviderID != "" && !m.Status.NodeRef.IsDefined() {
				return nil
			}
		}
		return errors.New("every machine has a node")
	}, of...)
	return name
}

// replaced waits until a Machine is gone or about to be.
func (r *rig) replaced(t *testing.T, name string) {
	t.Helper()
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		for i := range machines.Items {
			if m := &machines.Items[i]; m.Spec.InfrastructureRef.Name == name && m.DeletionTimestamp == nil {
				return fmt.Errorf("%s stays: %v", name, m.Status.Conditions)
			}
		}
		return nil
	})
}

// report returns the report of the last run in this boot of a machine; ok is false when there is none.
func (r *rig) report(t *testing.T, name string) (last report.Report, ok bool) {
	t.Helper()
	n := r.Node(name)
	if n == nil {
		return last, false
	}
	read, err := n.Exec(t.Context(), "cat", "/run/machineadm/report.json")
	if err != nil || read.ExitCode != 0 {
		return last, false
	}
	require.NoError(t, json.Unmarshal([]byte(read.Stdout), &last))
	return last, true
}

// prepared waits until a machine has applied its documents, after which it holds them no longer.
func (r *rig) prepared(t *testing.T, name string, documents int) {
	t.Helper()
	nodestest.Eventually(t, name+" to be prepared", func() bool {
		last, ok := r.report(t, name)
		return ok && last.Outcome == report.RunSucceeded && len(last.Documents) == documents
	})
	nodestest.Eventually(t, name+" to remove its stream", func() bool {
		left, err := r.Node(name).Exec(t.Context(), "test", "-e", "/etc/machineadm/node.yaml")
		return err == nil && left.ExitCode == 1
	})
}

// failed waits until the run of a machine has failed, and returns what machineadm says of it there.
func (r *rig) failed(t *testing.T, name string) string {
	t.Helper()
	nodestest.Eventually(t, name+" to fail", func() bool {
		last, ok := r.report(t, name)
		return ok && last.Outcome == report.RunFailed
	})
	said, err := r.Node(name).Exec(t.Context(), "machineadm", "status")
	require.NoError(t, err)
	return said.Stdout
}

// begun waits until a machine applies its last document.
func (r *rig) begun(t *testing.T, name string) {
	t.Helper()
	nodestest.Eventually(t, name+" to apply its last document", func() bool {
		last, ok := r.report(t, name)
		return ok && len(last.Documents) > 1 && last.Documents[len(last.Documents)-2].Outcome == report.Changed
	})
}

// deleted deletes the Cluster: no machine, and no Secret of it, is left.
func (r *rig) deleted(t testing.TB) {
	t.Helper()
	require.NoError(t, r.DeleteAllOf(t.Context(), &clusterv1.Cluster{}, client.InNamespace("default")))
	var clusters clusterv1.ClusterList
	management.Await(t, r, limit, &clusters, func() error {
		if len(clusters.Items) > 0 {
			return fmt.Errorf("the Cluster is there: %v", clusters.Items[0].Status.Conditions)
		}
		return nil
	})
	assert.Zero(t, r.Machines())
	var secrets corev1.SecretList
	management.Await(t, r, limit, &secrets, func() error {
		if len(secrets.Items) > 0 {
			return fmt.Errorf("%d Secrets are left, such as %s", len(secrets.Items), secrets.Items[0].Name)
		}
		return nil
	}, client.InNamespace("default"))
	nodestest.Eventually(t, "the machines to be gone", func() bool {
		return len(nodestest.Processes(t, fmt.Sprintf("machineadm-node-%d-", os.Getpid()))) == 0
	})
}
