package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// runtimeDocument has something of every part of a ContainerRuntime that costs time.
const runtimeDocument = `apiVersion: machineadm.cluster.x-k8s.io/v1alpha1
kind: ContainerRuntime
metadata: {name: node}
spec:
  provider: containerd
  cgroupDriver: systemd
  sandboxImage: registry.example.com/pause:3.10
  maxConcurrentDownloads: 7
  oomScore: -900
  runtimes:
    crun: {binary: /opt/crun/bin/crun}
  registries:
    registry.example.com: {mirrors: [{url: "https://mirror.example.com"}]}
    _default: {server: "https://mirror.example.com"}
  proxy: {https: "http://proxy.example.com:3128", noProxy: [10.0.0.0/8]}
`

const noopDocument = "apiVersion: bench.example.com/v1\nkind: Noop\nmetadata: {name: node}\nspec: {provider: bench}\n"

// BenchmarkContainerRuntime plans a document that matches, on a node with Debian 13's containerd, in turn with a
// document of the noop plugin, which answers and does nothing else. What it asks, which version of containerd that is and
// the state of the unit, are read by programs, which are measured separately.
func BenchmarkContainerRuntime(b *testing.B) {
	s := newScene(b)
	d := containerd.Start(b, containerd.V17)
	p := place{scene: s, node: d.Node}
	const plugins = "/usr/local/libexec/machineadm/"
	for from, to := range map[string]string{
		"measure": "/opt/bench/measure", "machineadm": "/usr/bin/machineadm",
		containerdPlugin: plugins + containerdPlugin, noopPlugin: plugins + noopPlugin,
	} {
		p.put(p.path(from), to, 0o755)
	}
	p.putText(plugins+noopPlugin+".script", `{"fitness": "active", "kinds": [{"apiVersion": "bench.example.com/v1", "kind": "Noop", "phase": "preparation"}]}`, 0o644)
	p.putText("/opt/bench/runtime.yaml", runtimeDocument, 0o600)
	p.putText("/opt/bench/noop.yaml", noopDocument, 0o600)
	measure := p.inside
	plan := func(stream string) Usage { return measure("machineadm", "plan", "--path", "/opt/bench/"+stream) }
	for deadline := time.Now().Add(time.Minute); ; { // until the plugins' digests are cached: see launch.Digests
		measure("machineadm", "apply", "--path", "/opt/bench/runtime.yaml")
		measure("machineadm", "apply", "--path", "/opt/bench/noop.yaml")
		known, err := p.node.CopyOut(b.Context(), "/var/lib/machineadm/digests.json")
		if err == nil && strings.Contains(string(known), noopPlugin) && strings.Contains(string(known), containerdPlugin) {
			break
		}
		if time.Now().After(deadline) {
			b.Fatalf("not remembered (%v): %s", err, known)
		}
	}
	var ours, noop, version, show Samples
	for b.Loop() {
		for range 15 {
			noop = append(noop, plan("noop.yaml"))
			ours = append(ours, plan("runtime.yaml"))
			version = append(version, measure("containerd", "--version"))
			show = append(show, measure("systemctl", "show", "--property=LoadState", "containerd.service"))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(noop.CPU(), "noop-cpu-ms")
	b.ReportMetric(ours.CPU(), "cpu-ms")
	b.ReportMetric(version.CPU(), "version-cpu-ms")
	b.ReportMetric(show.CPU(), "show-cpu-ms")
	b.ReportMetric(noop.CPU()+version.CPU(), "noop-and-version-cpu-ms")
}
