package promise_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

// TestDocumentsDisagree: what one document asks for and another one assumes is a warning of validate and of plan; what both ask for is
// refused.
func TestDocumentsDisagree(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := &lane{programs: build(t, filepath.Join(dir, "programs")), dir: filepath.Join(dir, "lane")}
	const node = "role: controlPlaneInit, kubernetesVersion: v1.37.1"
	containerd := distribution{files: map[string]string{
		"etc/os-release": "ID=debian\nVERSION_ID=\"12\"\n", "var/lib/dpkg/status": "Package: containerd\nStatus: install ok installed\nVersion: 1.7.24-1\n",
	}}
	for name, c := range map[string]struct {
		stream  stream
		field   string // of the only warning or conflict
		refused bool
	}{
		"cgroup drivers":           {stream{{"ContainerRuntime", "n", "", []string{"cgroupDriver: cgroupfs"}}, {"KubernetesNode", "n", "", []string{node, "kubelet: {cgroupDriver: systemd}"}}}, "spec.kubelet.cgroupDriver", true},
		"driver of containerd 1.7": {stream{{"ContainerRuntime", "n", "", []string{"logLevel: info"}}, {"KubernetesNode", "n", "", []string{node}}}, "spec.kubelet.cgroupDriver", false},
		"driver of both":           {stream{{"ContainerRuntime", "n", "", []string{"cgroupDriver: systemd"}}, {"KubernetesNode", "n", "", []string{node}}}, "", false},
		"set by the kubelet":       {stream{{"Sysctl", "n", "", []string{"parameters: {kernel.panic: 0}"}}, {"KubernetesNode", "n", "", []string{node}}}, "spec.kubelet.protectKernelDefaults", false},
		"as the kubelet sets it":   {stream{{"Sysctl", "n", "", []string{"parameters: {kernel.panic: 10}"}}, {"KubernetesNode", "n", "", []string{node}}}, "", false},
		"protected":                {stream{{"Sysctl", "n", "", []string{"parameters: {kernel.panic: 0}"}}, {"KubernetesNode", "n", "", []string{node, "kubelet: {protectKernelDefaults: true}"}}}, "spec.kubelet.protectKernelDefaults", true},
		"set by kube-proxy":        {stream{{"KubernetesNode", "n", "", []string{node}}, {"Sysctl", "n", "", []string{"parameters: {net.netfilter.nf_conntrack_max: 1048576}"}}}, "spec.kubeProxy.config", false},
		"left by kube-proxy":       {stream{{"Sysctl", "n", "", []string{"parameters: {net.netfilter.nf_conntrack_max: 1048576}"}}, {"KubernetesNode", "n", "", []string{node, "kubeProxy: {config: {conntrack: {maxPerCore: 0}}}"}}}, "", false},
		"forwarding":               {stream{{"Sysctl", "n", "", []string{"parameters: {net.ipv4.ip_forward: 0}"}}, {"KubernetesNode", "n", "", []string{node}}}, "spec.cluster", true},
	} {
		s := &scene{stream: c.stream}
		for name, text := range containerd.files {
			s.do(opFile, name, text)
		}
		m := l.image(t, s)
		planned := m.host(t, s.stream.text(), "plan")
		validated := m.host(t, s.stream.text(), "validate")
		require.Equal(t, c.refused, planned.exit == report.ExitUsage, "%s: %s", name, planned.output)
		if name != "driver of containerd 1.7" { // validate looks at no machine
			require.Equal(t, c.refused, validated.exit == report.ExitUsage, "%s: %s", name, validated.output)
		}
		var fields []string
		for _, d := range planned.report.Documents {
			for _, w := range d.Warnings {
				field, _, _ := strings.Cut(w, ": as long as")
				fields = append(fields, field)
			}
		}
		for _, e := range planned.report.Errors {
			if e.Document == "KubernetesNode/n" {
				fields = append(fields, e.Field)
			}
		}
		if c.field == "" {
			assert.Empty(t, fields, name)
		} else {
			assert.Equal(t, []string{c.field}, fields, name)
		}
	}
}
