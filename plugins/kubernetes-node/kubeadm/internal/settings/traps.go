package settings

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
)

// This file has settings that are valid, each for itself, and whose effect is not what they are written for. A component that does not start
// for certain is an error; everything else is a warning, which the setting in its text ends.

// traps looks at the configuration of the kubelet.
func (t together) traps() {
	const at = document.Path("spec.kubelet")
	r, k := t.r, t.k
	if hard, _ := k["evictionHard"].(map[string]any); hard != nil && k["mergeDefaultEvictionSettings"] == nil && !r.patched("evictionHard") {
		var gone []string
		for _, signal := range []string{"memory.available", "nodefs.available", "nodefs.inodesFree", "imagefs.available"} {
			if hard[signal] == nil {
				gone = append(gone, signal)
			}
		}
		if len(gone) > 0 {
			r.warn(t.at("evictionHard", at+".evictionHard"), "replaces all defaults of the kubelet, so that no pod is evicted for "+strings.Join(gone, ", ")+
				": name them as well, with 0% for none, or set mergeDefaultEvictionSettings in spec.kubelet.config")
		}
	}
	enforced, _ := k["enforceNodeAllocatable"].([]any)
	for _, who := range []string{"kube", "system"} {
		group, _ := k[who+"ReservedCgroup"].(string)
		if strings.HasSuffix(group, ".service") && k["cgroupDriver"] != "cgroupfs" && slices.Contains(enforced, any(who+"-reserved")) {
			r.warn(t.at(who+"ReservedCgroup", at+".config."+document.Path(who)+"ReservedCgroup"), "is a service, and with the cgroup driver systemd the kubelet starts only with a slice: name one, such as /system.slice")
		}
	}
	swap, _ := k["memorySwap"].(map[string]any)
	if _, set := k["failSwapOn"]; swap["swapBehavior"] == "LimitedSwap" && (r.spec.Role == Init && k["failSwapOn"] != false || !set && r.spec.Role != Init) && !r.patched("failSwapOn") {
		r.warn(at+".config.memorySwap", "has no effect with failSwapOn: true, its default, with which the kubelet does not start where swap is on: set failSwapOn as well")
	}
	if domain, _ := k["clusterDomain"].(string); r.spec.Role == Init && domain != "" && domain != cmp.Or(r.spec.Cluster.DNSDomain, "cluster.local") {
		r.refuse(true, t.at("clusterDomain", at+".config.clusterDomain"), "contradicts spec.cluster.dnsDomain, by default cluster.local, so that pods look for names that the cluster's DNS server does not have",
			"set that field, and remove this one")
	}
	servers, _ := k["clusterDNS"].([]any)
	for i, server := range servers {
		ip, err := netip.ParseAddr(fmt.Sprint(server))
		if err == nil && r.spec.Role == Init && !ip.IsLinkLocalUnicast() && !slices.ContainsFunc(r.services(), func(p netip.Prefix) bool { return p.Contains(ip) }) {
			r.warn((at + ".config.clusterDNS").Index(i), "is in none of the ranges of services, from which the DNS server of the cluster has its address: remove it, unless pods use another server")
		}
	}
	if pods, _ := k["staticPodPath"].(string); pods != "" && pods != "/etc/kubernetes/manifests" && r.spec.Role != Worker {
		r.refuse(true, t.at("staticPodPath", at+".config.staticPodPath"), "is not the directory in which kubeadm puts the control plane, which is never started", "remove it")
	}
	if most := r.addressesOfNode(); k["maxPods"] == nil && most < 110 {
		r.warn("spec.controllerManager.args", fmt.Sprintf("give each node %d addresses of spec.cluster.podSubnets, and the kubelet accepts 110 pods, of which some never start: set spec.kubelet.maxPods", most))
	}
	if most := r.addressesOfNode(); k["maxPods"] != nil && r.spec.Kubelet != nil && r.spec.Kubelet.MaxPods != nil && *r.spec.Kubelet.MaxPods > most {
		r.warn(at+".maxPods", fmt.Sprintf("is more than the %d addresses that each node gets of spec.cluster.podSubnets: set a smaller node-cidr-mask-size-ipv4 of the controller manager, "+
			"or allocate-node-cidrs=false if the network plugin has ranges of its own", most))
	}
}

// proxyTraps looks at the configuration of kube-proxy.
func (r *resolver) proxyTraps(at document.Path) {
	k := r.result.KubeProxy
	mode, _ := k["mode"].(string)
	local, _ := k["detectLocal"].(map[string]any)
	for needs, of := range map[string]string{"BridgeInterface": "bridgeInterface", "InterfaceNamePrefix": "interfaceNamePrefix"} {
		r.refuse(k["detectLocalMode"] == needs && local[of] == nil, at+".config.detectLocalMode", "needs detectLocal."+of+", without which kube-proxy does not start", "set it as well")
	}
	if nodePorts, _ := k["nodePortAddresses"].([]any); len(nodePorts) > 1 && slices.Contains(nodePorts, any("primary")) {
		r.refuse(true, at+".config.nodePortAddresses", "has primary beside ranges, with which kube-proxy does not start", "use either")
	}
	for _, name := range []string{"iptables", "ipvs", "nftables"} {
		backend, _ := k[name].(map[string]any)
		least, short := time.ParseDuration(fmt.Sprint(backend["minSyncPeriod"]))
		most, long := time.ParseDuration(fmt.Sprint(backend["syncPeriod"]))
		if long != nil || most == 0 {
			most = 30 * time.Second
		}
		r.refuse(short == nil && least > most, at+".config."+document.Path(name)+".minSyncPeriod", "is longer than syncPeriod, by default 30s, and kube-proxy does not start", "make it shorter")
	}
	client, _ := k["clientConnection"].(map[string]any)
	const kubeconfig = "/var/lib/kube-proxy/kubeconfig.conf"
	if file, _ := client["kubeconfig"].(string); file != "" && file != kubeconfig {
		r.warn(at+".config.clientConnection.kubeconfig", "is not the file that kubeadm mounts into kube-proxy: remove it, or write "+kubeconfig)
	}
	health, _ := k["healthzBindAddress"].(string)
	metrics, _ := k["metricsBindAddress"].(string)
	healthHost, healthPort, _ := net.SplitHostPort(cmp.Or(health, "0.0.0.0:10256"))
	metricsHost, metricsPort, _ := net.SplitHostPort(cmp.Or(metrics, "127.0.0.1:10249"))
	all := func(host string) bool { ip := net.ParseIP(host); return ip != nil && ip.IsUnspecified() }
	if healthPort == metricsPort && (healthHost == metricsHost || all(healthHost) || all(metricsHost)) {
		r.warn(at+".config.metricsBindAddress", "has the port of healthzBindAddress, by default 10256, and one of the two does not answer: use another port, such as 10249")
	}
	if k["hostnameOverride"] != nil {
		r.warn(at+".config.hostnameOverride", "has no effect, because kubeadm starts kube-proxy with the name of each node: remove it")
	}
	if k["portRange"] != nil {
		r.warn(at+".config.portRange", "has no effect, because kube-proxy has no mode that uses it any more: remove it")
	}
	ipvs, _ := k["ipvs"].(map[string]any)
	if len(ipvs) > 0 && mode != "ipvs" {
		r.warn(at+".config.ipvs", "has no effect without spec.kubeProxy.mode: ipvs")
	}
	scheduler, _ := ipvs["scheduler"].(string)
	r.oneOf(at+".config.ipvs.scheduler", scheduler, "rr", "wrr", "lc", "wlc", "fo", "ovf", "lblc", "lblcr", "sh", "mh", "dh", "sed", "nq", "twos") // ip_vs_*.ko of Linux
	if cidr, _ := k["clusterCIDR"].(string); cidr != "" && len(r.spec.Cluster.PodSubnets) > 0 && cidr != strings.Join(r.spec.Cluster.PodSubnets, ",") {
		r.warn(at+".config.clusterCIDR", "is not spec.cluster.podSubnets, so that traffic of other pods is taken for traffic from outside: remove it, unless pods have this range")
	}
}

// overlaps warns of an address of the machine, or of the endpoint, that is in a range of pods or of services. Nodes and pods send packets for such
// an address to a pod or a service.
func (r *resolver) overlaps() {
	if r.spec.Role != Init {
		return // the ranges are the cluster's
	}
	var pods []netip.Prefix
	for _, text := range r.spec.Cluster.PodSubnets {
		if p, err := netip.ParsePrefix(text); err == nil {
			pods = append(pods, p)
		}
	}
	host, _, _ := net.SplitHostPort(r.spec.Cluster.Endpoint)
	endpoint, _ := netip.ParseAddr(host)
	own := append(slices.Clone(r.result.NodeIPs), r.result.Advertised)
	for _, each := range []struct {
		at        document.Path
		what      string
		ranges    []netip.Prefix
		addresses []netip.Addr
	}{
		{"spec.cluster.podSubnets", "an address of this node", pods, own},
		{"spec.cluster.serviceSubnets", "an address of this node", r.services(), own},
		{"spec.cluster.podSubnets", "the address of spec.cluster.endpoint", pods, []netip.Addr{endpoint}},
		{"spec.cluster.serviceSubnets", "the address of spec.cluster.endpoint", r.services(), []netip.Addr{endpoint}},
	} {
		for _, p := range each.ranges {
			if slices.ContainsFunc(each.addresses, p.Contains) {
				r.warn(each.at, p.String()+" has "+each.what+", which pods then do not reach: use a range that the network of the machines does not have")
			}
		}
	}
}

// services returns the ranges of services.
func (r *resolver) services() []netip.Prefix {
	texts := r.spec.Cluster.ServiceSubnets
	if len(texts) == 0 {
		texts = []string{defaultServices}
	}
	var all []netip.Prefix
	for _, text := range texts {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// addressesOfNode is how many addresses of IPv4 the controller manager gives each node for its pods.
func (r *resolver) addressesOfNode() int {
	const unlimited = 1 << 32
	is4 := func(text string) bool { p, err := netip.ParsePrefix(text); return err == nil && p.Addr().Is4() }
	if r.spec.Role != Init || !slices.ContainsFunc(r.spec.Cluster.PodSubnets, is4) {
		return unlimited
	}
	length := 24
	if r.spec.ControllerManager != nil {
		for _, a := range r.spec.ControllerManager.Args {
			switch n, err := strconv.Atoi(a.Value); {
			case a.Name == "allocate-node-cidrs" && a.Value == "false":
				return unlimited
			case (a.Name == "node-cidr-mask-size-ipv4" || a.Name == "node-cidr-mask-size") && err == nil && n > 0 && n <= 32:
				length = n
			}
		}
	}
	return max(1<<(32-length)-2, 0)
}

// namesFile matches arguments whose value is a file that the component reads when it starts.
var namesFile = lazyregexp.New(`-file$|-cafile$|-config$|^config$|^kubeconfig$|^kubelet-certificate-authority$|^kubelet-client-(certificate|key)$`)

// componentTraps looks at the arguments of a component at a path of the spec, which runs in a container of kubeadm's.
func (r *resolver) componentTraps(at document.Path, name string, want *v1alpha1.ControlPlaneComponent) {
	changed := want.Image != "" || slices.ContainsFunc(r.spec.Patches, func(p v1alpha1.ComponentPatch) bool { return p.Target == name })
	volumes := string(at) + ".volumes"
	for i, a := range want.Args {
		field := (at + ".args").Index(i) + ".value"
		volume := r.volumeOf(want.Volumes, a.Value)
		switch {
		case a.Name == "cloud-provider" && a.Value != "external":
			r.refuse(a.Value != "" && !r.ownClouds(want.Args), field, "is no cloud provider of this version, and the component does not start",
				"use external, with the cloud controller manager of the provider")
		case a.Name == "oidc-issuer-url":
			r.refuse(!strings.HasPrefix(a.Value, "https://"), field, "must begin with https://, without which the API server does not start", "")
		case changed || !path.IsAbs(a.Value):
		case a.Name == "audit-log-path" && volume == nil:
			r.warn(field, "is a file in the container, lost with it: mount its directory in "+volumes+", with readOnly: false")
		case a.Name == "audit-log-path":
			r.refuse(volume.ReadOnly == nil || *volume.ReadOnly, field, "is on the volume "+volume.Name+", which is read-only, and the API server does not start", "set readOnly: false of the volume")
		case namesFile().MatchString(a.Name) && volume == nil && !r.mounted(a.Value):
			r.refuse(true, field, "is a file that the container does not have, without which the component does not start", "mount it, or its directory, in "+volumes)
		}
	}
}

// ownClouds reports whether a component has cloud providers of its own: until 1.30, with a feature gate that brings them back.
func (r *resolver) ownClouds(args []v1alpha1.Argument) bool {
	i := lastArgument(args, "feature-gates")
	return r.result.Version.Minor <= 30 && i >= 0 && strings.Contains(args[i].Value, "DisableCloudProviders=false")
}

// volumeOf returns the innermost volume that has a path in the container, nil for none.
func (r *resolver) volumeOf(volumes []v1alpha1.HostVolume, file string) (found *v1alpha1.HostVolume) {
	longest := 0
	for i, v := range volumes {
		at := v.HostPath
		if v.MountPath != "" {
			at = v.MountPath
		}
		if within(file, at) && len(at) > longest {
			found, longest = &volumes[i], len(at)
		}
	}
	return found
}

// mounted reports whether kubeadm itself mounts a path in its containers. Source: app/phases/controlplane/volumes.go.
func (r *resolver) mounted(file string) bool {
	return slices.ContainsFunc([]string{
		r.spec.Cluster.CertificatesDir, "/etc/ssl/certs", "/etc/pki", "/etc/ca-certificates", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates",
		"/etc/kubernetes/controller-manager.conf", "/etc/kubernetes/scheduler.conf",
	}, func(at string) bool { return within(file, at) })
}

func within(file, directory string) bool {
	return file == directory || strings.HasPrefix(file, strings.TrimSuffix(directory, "/")+"/")
}

// etcdTraps looks at the arguments of the etcd of a control plane, which the API server and kubeadm reach on the loopback address.
func (r *resolver) etcdTraps(at document.Path, args []v1alpha1.Argument) {
	if i := lastArgument(args, "listen-peer-urls"); i >= 0 && strings.Contains(args[i].Value, "http://") {
		r.warn(at.Index(i)+".value", "has an address without TLS, at which the members of other control planes, which use https, do not reach this one: use https")
	}
	i := lastArgument(args, "listen-client-urls")
	if i < 0 || r.argumentOfServer("etcd-servers") != "" {
		return
	}
	r.refuse(!regexp.MustCompile(`//(?:127\.0\.0\.1|\[::1\]|0\.0\.0\.0|\[::\]|localhost):`).MatchString(args[i].Value), at.Index(i)+".value",
		"has no loopback address, on which the API server of the machine reaches etcd", "add https://127.0.0.1:2379, or https://[::1]:2379")
}
