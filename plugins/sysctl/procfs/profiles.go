package main

import (
	"slices"

	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

// profile is a named set of parameters and the modules that provide them.
type profile struct {
	name       string
	parameters map[sysctld.Key]string
	modules    []string
}

// profiles returns the sets that a document can name.
func profiles() []profile {
	return []profile{
		{
			// What Kubernetes' container runtimes page asks of a node, and kubeadm's preflight checks in part.
			name: "kubernetes",
			parameters: map[sysctld.Key]string{
				ipForward:                             "1",
				"net/bridge/bridge-nf-call-iptables":  "1",
				"net/bridge/bridge-nf-call-ip6tables": "1",
			},
			modules: []string{"overlay", "br_netfilter"},
		},
		{
			// What a kubelet with protectKernelDefaults refuses to start without (kubernetes pkg/kubelet/cm).
			name: "kubelet-protect-defaults",
			parameters: map[sysctld.Key]string{
				"vm/overcommit_memory":      "1",
				"vm/panic_on_oom":           "0",
				"kernel/panic":              "10",
				"kernel/panic_on_oops":      "1",
				"kernel/keys/root_maxkeys":  "1000000",
				"kernel/keys/root_maxbytes": "25000000",
			},
		},
	}
}

const ipForward sysctld.Key = "net/ipv4/ip_forward"

func profileNames(known []profile) []string {
	var names []string
	for _, p := range known {
		names = append(names, p.name)
	}
	slices.Sort(names)
	return names
}

// witness returns a parameter that exists only where the kernel has the module. A kernel without a module directory,
// as a container sees it, does not say what is built in.
func witness(module string) (sysctld.Key, bool) {
	switch canonicalModule(module) {
	case "br_netfilter":
		return "net/bridge/bridge-nf-call-iptables", true
	case "nf_conntrack":
		return "net/netfilter/nf_conntrack_max", true
	}
	return "", false
}
