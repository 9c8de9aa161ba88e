package main

import (
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/sysctl/internal/sysctld"
)

// profile is a set of parameters and the modules that provide them.
type profile struct {
	parameters map[sysctld.Key]string
	modules    []string
}

// profiles returns the profiles of the contract, by name.
func profiles() map[string]profile {
	all := map[string]profile{}
	for name, p := range v1alpha1.SysctlProfiles() {
		parameters := map[sysctld.Key]string{}
		for text, value := range p.Parameters {
			parameters[sysctld.Key(v1alpha1.SysctlPath(text))] = value
		}
		all[name] = profile{parameters, p.Modules}
	}
	return all
}

// The parameters that kubeadm's preflight reads.
const (
	ipForward   sysctld.Key = "net/ipv4/ip_forward"
	ipv6Forward sysctld.Key = "net/ipv6/conf/default/forwarding"
)
