package infrastructure

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/management"
)

// kubelet is what the kubelet of a KubeadmControlPlane needs in a container, as a patch of kubeadm. The container shares the
// disk of the machine that runs the tests. By default a kubelet evicts pods when less than 10 per cent of it is free.
const kubelet = "failCgroupV1: false\nfailSwapOn: false\ncgroupDriver: cgroupfs\nevictionHard: {nodefs.available: 0%}\nimageGCHighThresholdPercent: 100\n"

// classy is a Cluster of the ClusterClass of the release.
const classy = `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: classy, namespace: default}
spec:
  clusterNetwork: {pods: {cidrBlocks: [192.168.0.0/16]}, services: {cidrBlocks: [10.128.0.0/12]}, serviceDomain: cluster.local}
  topology:
    classRef: {name: machineadm}
    version: v1.36.3
    controlPlane: {replicas: 1}
    workers: {machineDeployments: [{class: worker, name: worker, replicas: 1}]}
    variables: [{name: maxMapCount, value: 65530}]
`

// TestClass: the ClusterClass of the release has a KubeadmControlPlane and our workers, which another value of a variable replaces. Our
// manager writes no object of another provider.
func TestClass(t *testing.T) {
	needs.Campaign(t)
	r := start(t, 3)
	r.KubeadmBootstrap(t)
	r.KubeadmControlPlane(t)
	objects := class(t)
	r.apply(t, objects...)
	first := r.worker(t)
	topology := find(t, objects, "Cluster", "classy")
	set(t, topology, []any{map[string]any{"name": "maxMapCount", "value": int64(65531)}}, "spec", "topology", "variables")
	r.apply(t, topology)
	r.replaced(t, first)
	assert.NotEqual(t, first, r.worker(t))
	var written []string
	for _, request := range r.Audit(t) {
		if request.User.Name == management.Account && slices.Contains([]string{"create", "update", "patch", "delete"}, request.Verb) {
			written = append(written, request.Object.Resource)
		}
	}
	assert.Contains(t, written, "secrets")
	assert.Subset(t, []string{"events", "leases", "machinebootstrapconfigs", "machinebootstrapconfigtemplates", "secrets"}, written)
	r.deleted(t)
}

// TestRollout: a new version of a topology replaces its control plane, then its worker.
func TestRollout(t *testing.T) {
	needs.Campaign(t)
	r := layout{machines: 4, versions: true}.start(t)
	r.KubeadmBootstrap(t)
	r.KubeadmControlPlane(t)
	objects := class(t)
	r.apply(t, objects...)
	first := r.worker(t)
	topology := find(t, objects, "Cluster", "classy")
	set(t, topology, cluster.V137.Patch(), "spec", "topology", "version")
	r.apply(t, topology)
	r.replaced(t, first)
	r.worker(t)
	var machines clusterv1.MachineList
	require.NoError(t, r.List(t.Context(), &machines))
	for _, m := range machines.Items {
		assert.Equal(t, cluster.V137.Patch(), m.Spec.Version)
		assert.Equal(t, cluster.V137.Patch(), m.Status.NodeInfo.KubeletVersion)
	}
	r.deleted(t)
}

// worker waits for the machines of the Cluster, and returns the name of its worker.
func (r *rig) worker(t *testing.T) (name string) {
	t.Helper()
	for _, m := range r.running(t, 2) {
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; !controlPlane {
			name = m.Spec.InfrastructureRef.Name
		}
	}
	r.prepared(t, name, 3)
	return name
}

// class returns the ClusterClass of the release, adapted to containers, and a Cluster of it. Its variable is for a parameter that a
// container can set.
func class(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../host/controller/release/clusterclass-machineadm.yaml")
	require.NoError(t, err)
	adapted := strings.NewReplacer("DevCluster", kindCluster, "DevMachine", kindMachine, "infrastructure.cluster.x-k8s.io/v1beta2", "infrastructure.cluster.x-k8s.io/v1alpha1",
		"{backend: {inMemory: {}}}", "{}", "vm.max_map_count", "net.core.somaxconn").Replace(string(text))
	objects, err := management.Objects([]byte(adapted + "---" + classy))
	require.NoError(t, err)
	for _, o := range objects {
		o.SetNamespace("default")
	}
	set(t, kind(t, objects, "KubeadmControlPlaneTemplate"), map[string]any{
		"clusterConfiguration": map[string]any{"imageRepository": cluster.ImageRepository},
		"initConfiguration":    registration(), "joinConfiguration": registration(),
		"files": []any{map[string]any{"path": "/etc/kubernetes/patches/kubeletconfiguration0+merge.yaml", "content": kubelet}},
	}, "spec", "template", "spec", "kubeadmConfigSpec")
	config := kind(t, objects, "MachineBootstrapConfigTemplate")
	documents, _, err := unstructured.NestedSlice(config.Object, "spec", "template", "spec", "documents")
	require.NoError(t, err)
	for _, d := range documents {
		document, _ := d.(map[string]any)
		o := &unstructured.Unstructured{Object: document}
		adapt(t, o)
		if o.GetKind() == "KubernetesNode" {
			set(t, o, map[string]any{"file": "/var/lib/cloud/data/instance-id", "prefix": Prefix}, "spec", "node", "providerIDFrom")
			for _, field := range []string{"cluster", "kubelet"} { // of a control plane of ours
				unstructured.RemoveNestedField(o.Object, "spec", field)
			}
			set(t, o, []any{map[string]any{"target": "kubeletconfiguration", "patch": kubelet}}, "spec", "patches")
		}
	}
	set(t, config, documents, "spec", "template", "spec", "documents")
	return objects
}
