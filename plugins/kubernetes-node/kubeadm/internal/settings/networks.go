package settings

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// defaultServices is the range of services without spec.cluster.serviceSubnets. Source: kubeadm's API types.
const defaultServices = "10.96.0.0/12"

// subnets refuses what kubeadm refuses: ClusterConfiguration validation, ValidateNetworking. Ranges of pods and services that overlap are
// valid there, as in the documentation of Kubernetes, "Dual-stack support with kubeadm".
func (r *resolver) subnets(at document.Path, c v1alpha1.KubernetesCluster) {
	pods := r.networks(at+".podSubnets", c.PodSubnets, r.podSubnet)
	services := r.networks(at+".serviceSubnets", c.ServiceSubnets, func(field document.Path, p netip.Prefix) {
		r.refuse(p.Addr().BitLen()-p.Bits() > 20, field, "has more than 2^20 addresses", "use at most /12 of IPv4 and /108 of IPv6")
	})
	other := string(at) + ".serviceSubnets"
	if len(c.ServiceSubnets) == 0 {
		services, other = []netip.Prefix{netip.MustParsePrefix(defaultServices)}, "the default of "+other+", "+defaultServices
	}
	for _, p := range pods {
		for _, s := range services {
			message := "contains " + other + ": the controller manager leaves that out of the ranges of nodes, but a network plugin with ranges of its own need not"
			if s.Bits() <= p.Bits() {
				message = "is within " + other + ": the controller manager has no range left for a node"
			}
			if p.Overlaps(s) {
				r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(at) + ".podSubnets", Message: message + "; give each a range of its own"})
			}
		}
	}
}

// networks refuses what is not at most one network of each family, and what check refuses of one.
func (r *resolver) networks(at document.Path, values []string, check func(document.Path, netip.Prefix)) []netip.Prefix {
	var all []netip.Prefix
	for i, value := range values {
		field := at.Index(i)
		p, err := netip.ParsePrefix(value)
		if r.refuse(err != nil || p.Masked() != p, field, "must be a network", "write the first address and the length, such as 10.244.0.0/16") {
			continue
		}
		r.refuse(slices.ContainsFunc(all, func(o netip.Prefix) bool { return o.Addr().Is4() == p.Addr().Is4() }), field,
			"is the second network of its family", "give at most one of IPv4 and one of IPv6")
		if !r.refuse(p.Addr().BitLen()-p.Bits() < 4, field, "has fewer than 16 addresses", "use at least /28 of IPv4 and /124 of IPv6") {
			check(field, p)
		}
		all = append(all, p)
	}
	return all
}

// podSubnet refuses a range of pods that the controller manager cannot divide into the ranges of nodes.
func (r *resolver) podSubnet(at document.Path, p netip.Prefix) {
	name, length := "node-cidr-mask-size-ipv6", 64
	if p.Addr().Is4() {
		name, length = "node-cidr-mask-size-ipv4", 24
	}
	var args []v1alpha1.Argument
	if r.spec.ControllerManager != nil {
		args = r.spec.ControllerManager.Args
	}
	if i := lastArgument(args, "allocate-node-cidrs"); i >= 0 && args[i].Value == "false" {
		return
	}
	if i := lastArgument(args, name); i >= 0 && args[i].Value != "" {
		var err error
		if length, err = strconv.Atoi(args[i].Value); r.refuse(err != nil, document.Path("spec.controllerManager.args").Index(i)+".value", "is not a number", "") {
			return
		}
	}
	if p.Bits() == length {
		r.warn(at, fmt.Sprintf("has the range of one node, /%d, and none for a second node: use a larger range, or set %s in spec.controllerManager.args", length, name))
	}
	hint := "or set " + name + " in spec.controllerManager.args"
	r.refuse(p.Bits() > length, at, fmt.Sprintf("is smaller than the range of one node, /%d", length), "use a larger range, "+hint)
	r.refuse(length-p.Bits() > 16, at, fmt.Sprintf("has more than 2^16 ranges of nodes, which are /%d", length),
		fmt.Sprintf("use at most /%d, %s", length-16, hint))
}

// lastArgument returns the index of the last argument of a name, which is the one in force, or -1.
func lastArgument(args []v1alpha1.Argument, name string) int {
	last := -1
	for i, a := range args {
		if a.Name == name {
			last = i
		}
	}
	return last
}

// Families are IPv4 and IPv6, as far as pods of this node have addresses of them; nil if that is not known. For controlPlaneInit they are
// as kubeadm's InitNodeChecks do. Until it has asked the cluster, a node that joins does not have its ranges: then its own addresses
// tell the families. In any case kubeadm's JoinNodeChecks look at an address of the API server.
func (s Settings) Families() []string {
	var all []netip.Addr
	subnets := slices.Concat(s.Spec.Cluster.ServiceSubnets, s.Spec.Cluster.PodSubnets)
	switch {
	case s.Spec.Role == Init:
		if len(s.Spec.Cluster.ServiceSubnets) == 0 {
			subnets = append(subnets, defaultServices)
		}
		all = append(all, s.Advertised)
	case s.Cluster != nil:
		subnets = s.Cluster.Subnets
	default:
		all = slices.Clone(s.NodeIPs)
	}
	for _, text := range subnets {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p.Addr())
		}
	}
	if s.Spec.Role != Init {
		if d := s.Spec.Discovery; d != nil && d.Token != nil {
			host, _, _ := net.SplitHostPort(cmp.Or(d.Endpoint, s.Spec.Cluster.Endpoint))
			if ip, err := netip.ParseAddr(host); err == nil {
				all = append(all, ip)
			}
		}
	}
	var families []string
	if slices.ContainsFunc(all, netip.Addr.Is4) {
		families = append(families, "IPv4")
	}
	if slices.ContainsFunc(all, netip.Addr.Is6) {
		families = append(families, "IPv6")
	}
	return families
}
