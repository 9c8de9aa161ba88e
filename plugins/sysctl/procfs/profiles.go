package main

import "github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"

// profile is a set of parameters and the modules that provide them.
type profile struct {
	parameters map[sysctld.Key]string
	modules    []string
}

// profiles returns the profiles of the contract (contract/v1alpha1/profiles), by name.
func profiles() map[string]profile {
	return map[string]profile{
		// The requirements of Kubernetes' container runtimes page, which kubeadm's preflight checks in part.
		"kubernetes": {
			parameters: map[sysctld.Key]string{
				ipForward:                             "1",
				"net/bridge/bridge-nf-call-iptables":  "1",
				"net/bridge/bridge-nf-call-ip6tables": "1",
			},
			modules: []string{"overlay", "br_netfilter"},
		},
		// A kubelet with protectKernelDefaults does not start without these (kubernetes pkg/kubelet/cm).
		"kubelet-protect-defaults": {
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
