package wine

import (
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/kubeadm"
)

const nodeDocument = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  role: worker
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "192.0.2.1:6443"}
  node: {name: windows-1, criSocket: "npipe:////./pipe/containerd-containerd"}
  kubelet: {maxPods: 20}
  discovery: {token: {value: abcdef.c4n4rytoken54321}, caCertHashes: ["HASH"]}
`

// kubernetesNode joins a cluster with a stand-in for kubeadm, which is at the place of the real one, through the installed host.
// The kubelet is a service that is not started: its part is in kubeadm.
func kubernetesNode(t *testing.T, p prefix) {
	t.Helper()
	const dir, work = "Program Files/machineadm/", "ProgramData/machineadm-kubernetes-node"
	host := p.install(t, dir+"machineadm.exe", "build", "./host/cmd/machineadm")
	p.install(t, dir+"plugins/machineadm-kubernetes-node-plugin-kubeadm.exe", "build", "./plugins/kubernetes-node/kubeadm")
	p.install(t, "windows/system32/kubeadm.exe", "build", "./testenv/kubeadm/cmd/kubeadm")
	p.mustRun(t, "sc", "create", "kubelet", "binPath=", p.install(t, "windows/system32/kubelet.exe", "build", "./testenv/kubeadm/cmd/kubeadm"))
	ca, err := kubeadm.Authority()
	require.NoError(t, err)
	hash, err := ca.Hash()
	require.NoError(t, err)
	document := strings.Replace(nodeDocument, "HASH", hash, 1)
	p.write(t, "node.yaml", document)
	p.write(t, "create.yaml", strings.Replace(document, "role: worker", "role: controlPlaneInit", 1))
	apply := func() {
		t.Helper()
		p.mustRun(t, host, "apply", "--path", `C:\node.yaml`)
		p.MustExec(t, "test", "!", "-e", path.Join(drive, work))
		p.MustExec(t, "test", "!", "-e", path.Join(drive, "etc/kubernetes/bootstrap-kubelet.conf"))
		assert.Contains(t, p.MustExec(t, "cat", path.Join(drive, "var/lib/kubelet/config.yaml")).Stdout, `"maxPods":20`)
		files := p.MustExec(t, "grep", "-rls", "c4n4rytoken", drive).Stdout
		for file := range strings.Lines(files) {
			assert.Contains(t, []string{drive + "/node.yaml\n", drive + "/create.yaml\n"}, file)
		}
	}
	log := func() string { return p.MustExec(t, "cat", path.Join(drive, kubeadm.LogFile)).Stdout }
	const join = `join --config C:\ProgramData\machineadm-kubernetes-node\config.yaml` +
		" name=windows-1 criSocket=npipe:////./pipe/containerd-containerd\n"

	refused := p.run(t, host, "apply", "--path", `C:\create.yaml`)
	require.Equal(t, report.ExitUsage, refused.ExitCode, refused.Stdout+refused.Stderr)
	require.Contains(t, refused.Stderr, "Windows has no control plane")

	p.write(t, kubeadm.PaceFile, "10m config.yaml")
	ended := make(chan int, 1)
	go func() { ended <- p.run(t, host, "apply", "--path", `C:\node.yaml`).ExitCode }()
	const begun = `until test -s "$1/etc/kubernetes/pki/ca.crt" && test -s "$1/` + work + `/config.yaml"; do sleep 0.1; done
		pkill -KILL -f 'machineadm[.]exe'
		while pgrep -f 'kubeadm[.]exe'; do sleep 0.1; done`
	p.MustExec(t, "timeout", "600", "sh", "-c", begun, "sh", drive)
	require.NotZero(t, <-ended)
	require.Equal(t, join, log())
	p.MustExec(t, "rm", path.Join(drive, kubeadm.PaceFile))

	apply()
	require.Equal(t, join+"reset --force --cert-dir /etc/kubernetes/pki --cri-socket npipe:////./pipe/containerd-containerd\n"+join, log())
	p.mustRun(t, host, "plan", "--path", `C:\node.yaml`)
}
