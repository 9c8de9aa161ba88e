package crd_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// start runs etcd and an API server with the definitions, ours and Cluster API's, on free ports of the loopback interface. The client asks the server to
// refuse unknown fields, as kubectl does.
func start(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, apiextensionsv1.AddToScheme(scheme))
	limit := needs.Timeout(time.Minute)
	e := &envtest.Environment{Scheme: scheme, CRDInstallOptions: envtest.CRDInstallOptions{
		Paths: append(clusterAPI(t), directory), ErrorIfPathMissing: true,
	}, ControlPlaneStartTimeout: limit, ControlPlaneStopTimeout: limit}
	e.ControlPlane.Etcd = &envtest.Etcd{Path: cluster.Program(t, "etcd")}
	e.ControlPlane.GetAPIServer().Path = cluster.Program(t, "kube-apiserver")
	config, err := e.Start()
	t.Cleanup(func() { require.NoError(t, e.Stop()) })
	require.NoError(t, err)
	config.QPS = -1
	c, err := client.New(config, client.Options{Scheme: scheme})
	require.NoError(t, err)
	return client.WithFieldValidation(c, "Strict")
}

// clusterAPI lists the definitions of Cluster API that examples use.
func clusterAPI(t *testing.T) []string {
	t.Helper()
	module, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api").Output()
	require.NoError(t, err)
	var all []string
	for _, name := range []string{
		"core/config/crd/bases/cluster.x-k8s.io_clusters.yaml", "core/config/crd/bases/cluster.x-k8s.io_machines.yaml",
		"core/config/crd/bases/cluster.x-k8s.io_machinedeployments.yaml", "core/config/crd/bases/cluster.x-k8s.io_machinehealthchecks.yaml",
		"controlplane/kubeadm/config/crd/bases/controlplane.cluster.x-k8s.io_kubeadmcontrolplanes.yaml",
	} {
		all = append(all, filepath.Join(strings.TrimSpace(string(module)), name))
	}
	return all
}
