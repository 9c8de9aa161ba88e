package bench

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/kubeadm"
)

// nodeDocument is a worker with something of every part that costs time.
const nodeDocument = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: KubernetesNode
metadata: {name: node}
spec:
  provider: kubeadm
  role: worker
  kubernetesVersion: v1.37.1
  cluster: {endpoint: "192.0.2.1:6443"}
  node: {name: node, labels: {example.com/site: a}}
  kubelet: {maxPods: 50, config: {failSwapOn: false}}
  discovery: {token: {value: abcdef.0123456789abcdef}, caCertHashes: ["HASH"]}
  files: [{path: /etc/bench/audit.yaml, content: "kind: Policy"}]
`

// kubeadmScript costs what a shell and cp cost, and leaves what a join leaves.
const kubeadmScript = `#!/bin/sh
case $1 in
version) echo '{"clientVersion": {"gitVersion": "v1.37.1"}}' ;;
--version) echo Kubernetes v1.37.1 ;;
join) exec cp -a /opt/bench/joined/. / ;;
esac
`

// BenchmarkKubernetesNode joins a cluster with a script in the place of kubeadm, whose cost is measured beside, and plans the
// node that it has made, in turn with a document of the noop plugin.
func BenchmarkKubernetesNode(b *testing.B) {
	s := newScene(b)
	d := containerd.Start(b, containerd.V17)
	p := place{scene: s, node: d.Node}
	p.node.MustExec(b, "sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
	const plugins = "/usr/local/libexec/machineadm/"
	for from, to := range map[string]string{
		"measure": "/opt/bench/measure", "machineadm": "/usr/bin/machineadm",
		nodePlugin: plugins + nodePlugin, noopPlugin: plugins + noopPlugin,
	} {
		p.put(p.path(from), to, 0o755)
	}
	ca, err := kubeadm.Authority()
	if err != nil {
		b.Fatal(err)
	}
	hash, err := ca.Hash()
	if err != nil {
		b.Fatal(err)
	}
	joined, err := kubeadm.Joined("node", "192.0.2.1:6443")
	if err != nil {
		b.Fatal(err)
	}
	for file, text := range joined {
		p.node.MustExec(b, "mkdir", "-p", path.Dir("/opt/bench/joined"+file))
		p.putText("/opt/bench/joined"+file, string(text), 0o600)
	}
	p.putText(plugins+noopPlugin+".script", `{"fitness": "active", "kinds": [{"apiVersion": "bench.example.com/v1", "kind": "Noop", "phase": "preparation"}]}`, 0o644)
	p.putText("/opt/bench/node.yaml", strings.Replace(nodeDocument, "HASH", hash, 1), 0o600)
	p.putText("/opt/bench/noop.yaml", noopDocument, 0o600)
	p.putText("/usr/local/bin/kubeadm", kubeadmScript, 0o755)
	p.putText("/usr/local/bin/kubelet", kubeadmScript, 0o755)
	p.putText("/etc/systemd/system/kubelet.service", "[Service]\nExecStart=/usr/local/bin/kubelet\n", 0o644)
	p.node.MustExec(b, "systemctl", "daemon-reload")
	leave := func() {
		b.Helper()
		p.node.MustExec(b, "rm", "-rf", "/etc/kubernetes", "/var/lib/kubelet", "/etc/bench")
	}
	apply := func(stream string) Usage { return p.inside("machineadm", "apply", "--path", "/opt/bench/"+stream) }
	plan := func(stream string) Usage { return p.inside("machineadm", "plan", "--path", "/opt/bench/"+stream) }
	for deadline := time.Now().Add(time.Minute); ; { // until the plugins' digests are cached: see launch.Digests
		leave()
		apply("node.yaml")
		apply("noop.yaml")
		known, err := p.node.CopyOut(b.Context(), "/var/lib/machineadm/digests.json")
		if err == nil && strings.Contains(string(known), noopPlugin) && strings.Contains(string(known), nodePlugin) {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("not remembered (%v): %s", err, known)
		}
	}
	var join, script, version, converged, noop Samples
	for b.Loop() {
		for range 15 {
			leave()
			script = append(script, p.inside("kubeadm", "join"))
			version = append(version, p.inside("kubeadm", "version"))
			leave()
			join = append(join, apply("node.yaml"))
			converged = append(converged, plan("node.yaml"))
			noop = append(noop, plan("noop.yaml"))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(script.CPU()+2*version.CPU(), "kubeadm-cpu-ms") // as often as a run starts it
	b.ReportMetric(join.CPU(), "join-cpu-ms")
	b.ReportMetric(converged.CPU(), "plan-cpu-ms")
	b.ReportMetric(noop.CPU(), "noop-cpu-ms")
	b.ReportMetric(join.Wall(), "join-wall-ms")
}
