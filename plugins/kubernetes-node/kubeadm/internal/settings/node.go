package settings

import (
	"errors"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func (r *resolver) node(at document.Path, n v1alpha1.KubernetesNodeRegistration) {
	for _, v := range []struct {
		name, value string
		from        *v1alpha1.MachineValue
		accept      func(string) error
	}{
		{"name", n.Name, n.NameFrom, r.acceptName},
		{"advertiseAddress", n.AdvertiseAddress, n.AdvertiseAddressFrom, r.acceptAdvertised},
		{"ip", n.IP, n.IPFrom, r.acceptIP},
		{"providerID", n.ProviderID, n.ProviderIDFrom, r.acceptProviderID},
	} {
		switch field := at.Field(v.name); {
		case v.value != "":
			r.invalid(v.accept(v.value), field, "")
		case v.from != nil:
			r.from(field+"From", *v.from, v.accept)
		}
	}
	r.defaultName(at)
	r.advertised(at)
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		r.labelKey((at + ".labels").Key(key), key)
		r.labelValue((at + ".labels").Key(key), n.Labels[key])
		r.refuse(!v1alpha1.IsKubeletLabel(key), (at + ".labels").Key(key), "is a label that a kubelet must not set on its node",
			"use the prefix node.kubernetes.io/ or kubelet.kubernetes.io/, or one of your own; for others, see kubectl label")
	}
	taints := map[string]document.Path{}
	for i, t := range n.Taints {
		field := (at + ".taints").Index(i)
		r.labelKey(field+".key", t.Key)
		r.labelValue(field+".value", t.Value)
		r.unique(field, taints, t.Key+":"+t.Effect)
	}
	r.removed(at+".kubeletArgs", "kubelet", n.KubeletArgs)
	if r.spec.Role != Worker && n.Register != nil && !*n.Register && !slices.Contains(r.spec.SkipPhases, "mark-control-plane") {
		r.warn(at+".register", "leaves a control plane without a Node, for which kubeadm waits in vain: remove it, or name mark-control-plane in spec.skipPhases")
	}
	for i, a := range n.KubeletArgs {
		field := (at + ".kubeletArgs").Index(i)
		r.matches(field+".name", a.Name, argumentName, "is not the name of an argument", "write it without leading dashes")
		r.refuse(a.Name == "", field+".name", "is empty", "")
		r.refuse(!kubeletValue().MatchString(a.Value), field+".value", "has blanks, quotes, $ or \\, which kubeadm's file of arguments cannot express",
			"use a field of spec.kubelet.config instead")
	}
	socket, hint := linuxSocket, "write it like unix:///run/containerd/containerd.sock"
	if r.result.Windows {
		socket, hint = windowsPipe, "write it like npipe:////./pipe/containerd-containerd"
	}
	r.matches(at+".criSocket", n.CRISocket, socket, "is not the address of a container runtime", hint)
	r.refuse(strings.HasSuffix(n.CRISocket, "/docker.sock"), at+".criSocket", "is of Docker, which has no interface for the kubelet", "use that of containerd, or unix:///run/cri-dockerd.sock")
	r.refuse(strings.HasSuffix(n.CRISocket, "/dockershim.sock"), at+".criSocket", "is of dockershim, which no supported version has", "use that of containerd, or unix:///run/cri-dockerd.sock")
	r.refuse(n.Swap != "" && r.result.Windows, at+".swap", "Windows has no such setting", "remove it")
}

func (r *resolver) labelKey(field document.Path, key string) {
	prefix, name, ok := strings.Cut(key, "/")
	if !ok {
		prefix, name = "", key
	}
	r.refuse(!labelName().MatchString(name) || ok && !v1alpha1.IsSubdomain(prefix), field, "is not the key of a label", "write it like example.com/name")
}

func (r *resolver) labelValue(field document.Path, value string) {
	r.matches(field, value, labelName, "is not the value of a label", "use at most 63 letters, digits, ., _ and -")
}

// advertised refuses an address with which the API server does not start, and warns where kubeadm may choose one: its
// validatePublicIPServiceClusterIPRangeIPFamilies.
func (r *resolver) advertised(at document.Path) {
	services, name := r.spec.Cluster.ServiceSubnets, "spec.cluster.serviceSubnets"
	if len(services) == 0 {
		services, name = []string{defaultServices}, "the default of "+name+", "+defaultServices
	}
	ip, n := r.result.Advertised, r.spec.Node
	first, err := netip.ParsePrefix(services[0])
	if r.spec.Role != Init || err != nil || ip.IsLoopback() || r.argumentOfServer("advertise-address") != "" || r.argumentOfServer("endpoint-reconciler-type") == "none" {
		return
	}
	field, value := at+".advertiseAddress", n.AdvertiseAddress
	given := value != "" || n.AdvertiseAddressFrom != nil
	if !given && (n.IP != "" || n.IPFrom != nil) {
		field, value, given = at+".ip", n.IP, true
	}
	message, hint := "is of another family than the first of "+name+", with which the API server does not start", "begin both with the same family"
	switch {
	case !given && first.Addr().Is6():
		r.result.Warnings = append(r.result.Warnings, sdk.Warning{Field: string(field), Message: "is absent: kubeadm takes the address of the default route, and one of IPv4 " +
			message + "; set spec.node.advertiseAddress or spec.node.ip"})
	case !ip.IsValid() || ip.Is4() == first.Addr().Is4():
	case value == "":
		r.wait(field+"From", message, hint)
	default:
		r.refuse(true, field, message, hint)
	}
}

// argumentOfServer returns the value of an argument of the API server, or "".
func (r *resolver) argumentOfServer(name string) string {
	if r.spec.APIServer == nil {
		return ""
	}
	if i := lastArgument(r.spec.APIServer.Args, name); i >= 0 {
		return r.spec.APIServer.Args[i].Value
	}
	return ""
}

// defaultName takes the host name, as the kubelet does.
func (r *resolver) defaultName(at document.Path) {
	if r.spec.Node.Name != "" || r.spec.Node.NameFrom != nil || r.m.Offline() {
		return
	}
	name := strings.ToLower(strings.TrimSpace(r.m.Target.Hostname))
	err := r.acceptName(name)
	if err == nil && isLocalhost(name) {
		err = errors.New("is " + name + ", as on any machine without a name of its own")
	}
	if err != nil {
		r.wait(at+".name", "the host name of this machine "+err.Error(), "set another host name, or give the name of the node")
	}
}
