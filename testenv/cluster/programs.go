package cluster

import (
	"testing"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

// Version is a minor version of Kubernetes that tests can have.
type Version string

const (
	// V130 reads kubeadm.k8s.io/v1beta3 alone. Only make campaign builds it.
	V130 Version = "1.30"
	// V136 reads v1beta4, and v1beta3 with a warning. Clusters of tests have this version: all its programs are built.
	V136 Version = "1.36"
	// V137 reads v1beta4 alone. Only make campaign builds its other programs.
	V137 Version = "1.37"
)

// Versions lists every version that has a kubeadm, oldest first.
func Versions() []Version { return []Version{V130, V136, V137} }

// Patch is the version that is built, as kubeadm's kubernetesVersion.
func (v Version) Patch() string {
	return map[Version]string{V130: "v1.30.14", V136: "v1.36.3", V137: "v1.37.1"}[v]
}

// Tools is the module in testenv/tools with every program of a node and of a control plane, and the managers of Cluster API.
const Tools = "kubernetes-1.36"

// Kubeadm returns the path of the version's kubeadm, which is built first when the cache does not hold it: minutes.
func Kubeadm(t testing.TB, v Version) string {
	t.Helper()
	if v == V136 {
		return Program(t, "kubeadm")
	}
	return tools.For(t, "kubeadm-"+string(v)+"/kubeadm")
}

// Program returns the path of a program of version 1.36, or of the etcd, the pause or Cluster API beside it, which are all built
// first when the cache does not hold them: minutes.
func Program(t testing.TB, name string) string {
	t.Helper()
	require.Tier(t, require.Cluster)
	return tools.For(t, Tools+"/"+name)
}

// program returns the path of a program of a node of the version, likewise.
func (v Version) program(t testing.TB, name string) string {
	t.Helper()
	switch {
	case name == "kubeadm":
		return Kubeadm(t, v)
	case v == V136 || name == "etcd" || name == "pause":
		return Program(t, name)
	}
	return tools.For(t, "kubernetes-"+string(v)+"/"+name)
}
