package main

import (
	"maps"
	"slices"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/ready"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// claim claims the values that the programs of the node require, and assumes the values that they set when they start, which overwrite
// those of another document.
func claim(m sdk.Machine, s settings.Settings) {
	if s.Windows {
		return
	}
	driver := m.Assume
	name, set := s.KubeletField("cgroupDriver")
	if set {
		driver = m.Claim
	}
	if text, ok := name.(string); !ok {
		driver("node:cgroup-driver", "spec.kubelet.cgroupDriver", "systemd") // kubeadm's default
	} else {
		driver("node:cgroup-driver", "spec.kubelet.cgroupDriver", text)
	}
	if socket := s.Spec.Node.CRISocket; socket != "" {
		m.Claim("node:container-runtime", "spec.node.criSocket", ready.Service(socket))
	}
	kernel := m.Assume
	if protect, _ := s.KubeletField("protectKernelDefaults"); protect == true {
		kernel = m.Claim // the kubelet ends with an error instead
	}
	each(kubeletKernel(), func(key, value string) { kernel("sysctl:"+key, "spec.kubelet.protectKernelDefaults", value) })
	claimForwarding(m, s)
	if s.Spec.Role != settings.Init {
		return // the cluster has the configuration of kube-proxy
	}
	if p := s.Spec.KubeProxy; p == nil || !p.Skip {
		each(proxyKernel(s.KubeProxy), func(key, value string) { m.Assume("sysctl:"+key, "spec.kubeProxy.config", value) })
	}
}

// claimForwarding claims what the pods of the node need of the kernel. A node that joins may not know the families of its cluster yet, and then
// nearly always has IPv4; its own address says otherwise.
func claimForwarding(m sdk.Machine, s settings.Settings) {
	families, kernel, field := s.Families(), m.Claim, "spec.cluster"
	if families == nil {
		families, kernel, field = []string{"IPv4"}, m.Assume, "spec.node.ip"
	}
	if slices.Contains(families, "IPv4") && !s.Ignores(settings.CheckForwarding) {
		kernel("sysctl:net.ipv4.ip_forward", field, "1")
		kernel("sysctl:net.ipv4.conf.all.forwarding", field, "1") // its other name
	}
	if slices.Contains(families, "IPv6") && !s.Ignores(settings.CheckForwarding6) {
		kernel("sysctl:net.ipv6.conf.all.forwarding", field, "1")
		kernel("sysctl:net.ipv6.conf.default.forwarding", field, "1") // which kubeadm reads
		kernel("sysctl:net.ipv6.conf.all.disable_ipv6", field, "0")
	}
}

// each calls a function with the parameters in the order of their keys, so that warnings have an order.
func each(parameters map[string]string, do func(key, value string)) {
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		do(key, parameters[key])
	}
}

// kubeletKernel are the parameters that a kubelet requires. Source: setupKernelTunables of the kubelet.
func kubeletKernel() map[string]string {
	return map[string]string{
		"vm.overcommit_memory": "1", "vm.panic_on_oom": "0", "kernel.panic": "10", "kernel.panic_on_oops": "1",
		"kernel.keys.root_maxkeys": "1000000", "kernel.keys.root_maxbytes": "25000000",
	}
}

// proxyKernel are the parameters that kube-proxy sets with this configuration. nf_conntrack_max follows from the number of processors, and
// 0 leaves a parameter of conntrack. Source: KubeProxyConntrackConfiguration, and the package proxy/iptables of kube-proxy.
func proxyKernel(config map[string]any) map[string]string {
	out := map[string]string{}
	conntrack, _ := config["conntrack"].(map[string]any)
	if conntrack["maxPerCore"] == nil {
		out["net.netfilter.nf_conntrack_max"] = "32768 for each processor"
	}
	if conntrack["tcpEstablishedTimeout"] == nil {
		out["net.netfilter.nf_conntrack_tcp_timeout_established"] = "86400"
	}
	if conntrack["tcpCloseWaitTimeout"] == nil {
		out["net.netfilter.nf_conntrack_tcp_timeout_close_wait"] = "3600"
	}
	iptables, _ := config["iptables"].(map[string]any)
	if mode := config["mode"]; (mode == nil || mode == "" || mode == "iptables") && iptables["localhostNodePorts"] != false {
		out["net.ipv4.conf.all.route_localnet"] = "1"
	}
	return out
}
