package settings

import (
	"cmp"
	_ "embed"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

// This file has arguments of components that do not go together, or that contradict the field of the document that sets the same thing.

// commandLines looks at the arguments of the kubelet and of the components of a new cluster. A component with an image of the document is left
// alone; a patch can change arguments, so that a component with a patch is checked argument by argument only.
func (r *resolver) commandLines() {
	minor := r.result.Version.Minor
	r.knownArguments("spec.node.kubeletArgs", "kubelet", r.spec.Node.KubeletArgs, minor-kubeletsBack)
	r.argumentPairs("spec.node.kubeletArgs", "kubelet", r.spec.Node.KubeletArgs)
	for _, c := range Components(r.spec) {
		if c.Want == nil || c.Want.Image != "" {
			continue
		}
		at := document.Path("spec").Field(c.Field) + ".args"
		if r.knownArguments(at, c.Name, c.Want.Args, minor); r.patchedComponent(c.Name) {
			continue
		}
		r.argumentPairs(at, c.Name, c.Want.Args)
		fields := r.fieldsOf(c.Name)
		for i, a := range c.Want.Args {
			field, inForce := fields[a.Name], i == lastArgument(c.Want.Args, a.Name)
			r.refuse(inForce && field.value != "" && a.Value != field.value, at.Index(i)+".value", "contradicts "+field.at, "set that field, and remove the argument")
		}
		switch c.Name {
		case "kube-apiserver":
			r.serverPairs(at, c.Want.Args)
		case "kube-controller-manager":
			r.rangesOfNodes(at, c.Want.Args)
			r.signers(at, c.Want.Args)
			r.leaderElection(at, c.Want.Args)
		case "kube-scheduler":
			r.leaderElection(at, c.Want.Args)
		}
	}
}

func (r *resolver) patchedComponent(name string) bool {
	return slices.ContainsFunc(r.spec.Patches, func(p v1alpha1.ComponentPatch) bool { return p.Target == name })
}

// fieldValue is the value of an argument that a field of the document sets, and that field.
type fieldValue struct{ value, at string }

// fieldsOf returns the arguments that kubeadm sets from fields of the document. Other parts of the cluster follow the field: the address of the
// DNS server, the probes of the kubelet, certificates. Source: kubeadm, app/phases/controlplane/manifests.go.
func (r *resolver) fieldsOf(component string) map[string]fieldValue {
	c := r.spec.Cluster
	services := fieldValue{cmp.Or(strings.Join(c.ServiceSubnets, ","), defaultServices), "spec.cluster.serviceSubnets"}
	switch component {
	case "kube-apiserver":
		return map[string]fieldValue{
			"service-cluster-ip-range": services,
			"secure-port":              {fmt.Sprint(Settings{Spec: r.spec}.Port()), "spec.node.advertisePort"},
		}
	case "kube-controller-manager":
		return map[string]fieldValue{
			"service-cluster-ip-range": services,
			"cluster-cidr":             {strings.Join(c.PodSubnets, ","), "spec.cluster.podSubnets"},
		}
	}
	return nil
}

//go:embed argumentpairs.txt
var argumentPairTable string

// argumentPairs refuses arguments that a program does not take together, or not alone, and warns of those without effect.
func (r *resolver) argumentPairs(at document.Path, program string, args []v1alpha1.Argument) {
	reported := map[int]bool{}
	for line := range strings.Lines(argumentPairTable) {
		f := strings.Fields(line)
		if f[0] != program && f[0] != "*" {
			continue
		}
		first := slices.IndexFunc(args, func(a v1alpha1.Argument) bool { return named(f[1], a) && !named(f[3], a) })
		other := slices.IndexFunc(args, func(a v1alpha1.Argument) bool { return named(f[3], a) })
		if first < 0 || reported[first] || (other >= 0) != (f[2] == "excludes") {
			continue
		}
		field, others := at.Index(first)+".name", strings.ReplaceAll(f[3], "|", " or ")
		switch reported[first] = true; f[2] {
		case "excludes":
			r.refuse(true, field, "excludes "+args[other].Name+", and "+program+" does not start with both", "remove one of the two")
		case "needs":
			r.refuse(true, field, "needs "+others+", without which "+program+" does not start", "set that as well")
		default:
			r.warn(field, "has no effect without "+others+": set that as well, or remove it")
		}
	}
}

// named reports whether an argument is one of argumentpairs.txt.
func named(patterns string, a v1alpha1.Argument) bool {
	return slices.ContainsFunc(strings.Split(patterns, "|"), func(pattern string) bool {
		name, item, valued := strings.Cut(pattern, "=")
		fits, _ := path.Match(name, a.Name) // each pattern is valid
		on, _ := strconv.ParseBool(a.Value)
		return fits && a.Value != "" && (!valued || item == "on" && on || slices.Contains(strings.Split(a.Value, ","), item))
	})
}

// serverPairs looks at the arguments of the API server. Sources: apiserver/pkg/server/options and pkg/kubeapiserver/options of Kubernetes.
func (r *resolver) serverPairs(at document.Path, args []v1alpha1.Argument) {
	value := func(name string) (string, document.Path) {
		if i := lastArgument(args, name); i >= 0 {
			return args[i].Value, at.Index(i) + ".value"
		}
		return "", ""
	}
	if ports, portsAt := value("service-node-port-range"); portsAt != "" {
		first, last, ok := portRange(ports)
		r.refuse(!ok, portsAt, "is not a range of ports, and the API server does not start", "write it like 30000-32767")
		server := Settings{Spec: r.spec}.Port()
		for _, port := range []int{server, 2379, 10250} {
			if ok && first <= port && port <= last {
				r.warn(portsAt, fmt.Sprintf("has port %d, on which a component of this node listens, so that a service can take it: end the range before it, or begin behind it", port))
				break
			}
		}
	}
	anonymous, anonymousAt := value("anonymous-auth")
	if on, err := strconv.ParseBool(anonymous); err == nil && !on && lastArgument(args, "authentication-config") < 0 {
		r.refuse(true, anonymousAt, "makes the probes of the API server fail, which are anonymous, so that the kubelet restarts it again and again",
			"allow anonymous requests of /livez, /readyz and /healthz alone, with a file in authentication-config")
	}
	if modes, modesAt := value("authorization-mode"); modesAt != "" {
		all := strings.Split(modes, ",")
		r.refuse(!slices.ContainsFunc(all, func(mode string) bool { return mode != "RBAC" && mode != "AlwaysDeny" }), modesAt,
			"gives kubelets no rights, so that no node registers", "add Node before the others: Node,RBAC")
		r.refuse(!slices.ContainsFunc(all, func(mode string) bool { return mode != "Node" && mode != "AlwaysDeny" }), modesAt,
			"gives kubeadm no rights, which uploads its configuration to the cluster", "add RBAC behind the others: Node,RBAC")
	}
	if plugins, pluginsAt := value("enable-admission-plugins"); pluginsAt != "" && !slices.Contains(strings.Split(plugins, ","), "NodeRestriction") &&
		!strings.Contains(r.argumentOfServer("disable-admission-plugins"), "NodeRestriction") {
		r.warn(pluginsAt, "replaces the list of kubeadm, so that a node may change other nodes and their pods: add NodeRestriction, or name it in disable-admission-plugins")
	}
	if names, namesAt := value("requestheader-allowed-names"); names != "" && !slices.Contains(strings.Split(names, ","), "front-proxy-client") {
		r.warn(namesAt, "has not front-proxy-client, the name of kubeadm's certificate, so that no extension of the API, such as metrics, takes requests: add it, or remove the argument")
	}
	on, _ := value("enable-admission-plugins")
	off, offAt := value("disable-admission-plugins")
	both := slices.ContainsFunc(strings.Split(off, ","), func(name string) bool { return name != "" && slices.Contains(strings.Split(on, ","), name) })
	r.refuse(both, offAt, "has a plugin that enable-admission-plugins has as well, and the API server does not start", "remove one of the two")
	apis, apisAt := value("runtime-config")
	r.refuse(apis == "api/all=false", apisAt, "leaves no interface, and the API server does not start", "name those that it keeps as well, such as api/ga=true")
	if servers, serversAt := value("etcd-servers"); serversAt != "" && (r.spec.Etcd == nil || r.spec.Etcd.External == nil) {
		r.refuse(strings.Contains(servers, "http://"), serversAt, "has an address without TLS, and the etcd of a control plane answers with TLS alone", "remove it, or use https")
	}
	if address, addressAt := value("bind-address"); addressAt != "" {
		ip, err := netip.ParseAddr(address)
		if err == nil && ip.IsLoopback() {
			r.warn(addressAt, "is an address of this machine alone, so that no other node reaches the API server: remove it, or use 0.0.0.0")
		}
	}
}

// signers warns of a controller manager without the controllers with which nodes join: they are off unless they are named. Source: kubeadm,
// app/phases/controlplane/manifests.go.
func (r *resolver) signers(at document.Path, args []v1alpha1.Argument) {
	i := lastArgument(args, "controllers")
	if i < 0 || args[i].Value == "" {
		return
	}
	names := strings.Split(args[i].Value, ",")
	if !slices.Contains(names, "*") {
		r.warn(at.Index(i)+".value", "runs no other controller than these: begin the list with *, unless another program signs certificates, starts pods and gives nodes their ranges")
	}
	for short, long := range map[string]string{"bootstrapsigner": "bootstrap-signer-controller", "tokencleaner": "token-cleaner-controller"} {
		if off := slices.Contains(names, "-"+short) || slices.Contains(names, "-"+long); !off && !slices.Contains(names, short) && !slices.Contains(names, long) {
			r.warn(at.Index(i)+".value", "replaces the list of kubeadm, so that no node joins with a token: add bootstrapsigner,tokencleaner")
			return
		}
	}
}

// leaderElection refuses times with which a component does not start. Source: NewLeaderElector in client-go.
func (r *resolver) leaderElection(at document.Path, args []v1alpha1.Argument) {
	times, field := map[string]time.Duration{"lease-duration": 15 * time.Second, "renew-deadline": 10 * time.Second, "retry-period": 2 * time.Second}, document.Path("")
	for name := range times {
		if i := lastArgument(args, "leader-elect-"+name); i >= 0 {
			d, err := time.ParseDuration(args[i].Value)
			if err != nil {
				return
			}
			times[name], field = d, max(field, at.Index(i)+".value")
		}
	}
	lease, deadline, retry := times["lease-duration"], times["renew-deadline"], times["retry-period"]
	r.refuse(field != "" && (lease <= deadline || deadline*5 <= retry*6), field,
		"leaves leader-elect-lease-duration, by default 15s, not longer than leader-elect-renew-deadline, by default 10s, or that not longer than 1.2 times leader-elect-retry-period, by default 2s, and the component does not start",
		"set the other ones as well")
}

// portRange reads FIRST-LAST, FIRST+COUNT or one port, without blanks inside. Source: k8s.io/apimachinery, pkg/util/net.
func portRange(text string) (first, last int, ok bool) {
	text = strings.TrimSpace(text)
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		from, to, isRange = strings.Cut(text, "+")
	}
	first, err := strconv.Atoi(from)
	if last = first; err == nil && isRange {
		last, err = strconv.Atoi(to)
		if strings.Contains(text, "+") {
			last += first
		}
	}
	return first, last, err == nil && first > 0 && first <= last && last <= 65535
}

// rangesOfNodes refuses arguments for the ranges of nodes with which the controller manager does not start. Source: setNodeCIDRMaskSizes in
// cmd/kube-controller-manager/app/core.go.
func (r *resolver) rangesOfNodes(at document.Path, args []v1alpha1.Argument) {
	is6 := func(text string) bool { return strings.Contains(text, ":") }
	pods := r.spec.Cluster.PodSubnets
	four, six := slices.ContainsFunc(pods, func(p string) bool { return !is6(p) }), slices.ContainsFunc(pods, is6)
	if i := lastArgument(args, "allocate-node-cidrs"); i >= 0 && len(pods) == 0 && lastArgument(args, "cluster-cidr") < 0 {
		on, _ := strconv.ParseBool(args[i].Value)
		r.refuse(on, at.Index(i)+".value", "needs the range of pods, without which the controller manager does not start", "set spec.cluster.podSubnets")
	}
	if i := lastArgument(args, "node-monitor-grace-period"); i >= 0 {
		if d, err := time.ParseDuration(args[i].Value); err == nil && d > 0 && d <= 10*time.Second {
			r.warn(at.Index(i)+".value", "is not longer than the 10s between two signs of life of a kubelet, so that nodes become NotReady again and again: use at least 40s")
		}
	}
	for i, a := range args {
		if i != lastArgument(args, a.Name) || a.Value == "0" {
			continue
		}
		field := at.Index(i) + ".name"
		if size, err := strconv.Atoi(a.Value); err == nil && strings.HasPrefix(a.Name, "node-cidr-mask-size") && (len(pods) == 1 || a.Name != "node-cidr-mask-size") {
			r.maskOfNodes(at.Index(i)+".value", a.Name, size)
		}
		switch a.Name {
		case "node-cidr-mask-size":
			r.refuse(four && six, field, "is for pods of one family, and the controller manager does not start", "use node-cidr-mask-size-ipv4 and node-cidr-mask-size-ipv6")
		case "node-cidr-mask-size-ipv4", "node-cidr-mask-size-ipv6":
			r.refuse(lastArgument(args, "node-cidr-mask-size") >= 0, field, "excludes node-cidr-mask-size, and the controller manager does not start", "remove one of the two")
			r.refuse(a.Name == "node-cidr-mask-size-ipv4" && six && !four || a.Name == "node-cidr-mask-size-ipv6" && four && !six, field,
				"is for a family that spec.cluster.podSubnets does not have, and the controller manager does not start", "remove it")
		}
	}
}

// maskOfNodes refuses a size of a node's range that is not of the pods' range. Source: NewCIDRRangeAllocator and cidrset.
func (r *resolver) maskOfNodes(at document.Path, name string, size int) {
	for _, text := range r.spec.Cluster.PodSubnets {
		pods, err := netip.ParsePrefix(text)
		if err != nil || name != "node-cidr-mask-size" && strings.HasSuffix(name, "6") != pods.Addr().Is6() {
			continue
		}
		r.refuse(size < pods.Bits() || size > pods.Addr().BitLen() || size-pods.Bits() > 16, at, "is not between "+fmt.Sprint(pods.Bits())+", the size of "+text+
			", and 16 bits more, and the controller manager does not start", "correct it")
	}
}

// etcdPairs looks at the arguments of the etcd of a control plane. Source: Validate in the embed package of etcd.
func (r *resolver) etcdPairs(at document.Path, args []v1alpha1.Argument) {
	if i := lastArgument(args, "data-dir"); i >= 0 {
		data := cmp.Or(r.spec.Etcd.Local.DataDir, "/var/lib/etcd")
		r.refuse(args[i].Value != data, at.Index(i)+".value", "contradicts spec.etcd.local.dataDir, the only directory of the machine that etcd has", "set that field, and remove the argument")
	}
	for _, name := range []string{"initial-cluster", "name"} {
		i := lastArgument(args, name)
		r.refuse(i >= 0, at.Index(i)+".name", "is set by kubeadm, from the members that the cluster has, and etcd starts with no other value", "remove it")
	}
	times, field := map[string]int{"heartbeat-interval": 100, "election-timeout": 1000}, document.Path("")
	for name := range times {
		if i := lastArgument(args, name); i >= 0 {
			n, err := strconv.Atoi(args[i].Value)
			if err != nil {
				return
			}
			times[name], field = n, max(field, at.Index(i)+".value")
		}
	}
	r.refuse(field != "" && 5*times["heartbeat-interval"] > times["election-timeout"], field, "leaves election-timeout, by default 1000, less than five times heartbeat-interval, by default 100, and etcd does not start",
		"set the other one as well")
	r.refuse(times["election-timeout"] > 50000, field, "is more than the 50,000 ms of election-timeout that etcd accepts", "")
}

// etcdOfKubeadm are the arguments that kubeadm gives every etcd. Source: getEtcdCommand in its app/phases/etcd.
func etcdOfKubeadm() []string {
	return strings.Fields(`name listen-client-urls advertise-client-urls listen-peer-urls initial-advertise-peer-urls data-dir cert-file key-file trusted-ca-file
		client-cert-auth peer-cert-file peer-key-file peer-trusted-ca-file peer-client-cert-auth snapshot-count listen-metrics-urls initial-cluster`)
}

// etcdVariables looks at the environment of the etcd of a control plane, of which it reads ETCD_NAME as its argument "name". Source: pkg/flags of
// etcd.
func (r *resolver) etcdVariables(at document.Path, local v1alpha1.LocalEtcd) {
	minor := r.result.Version.Minor
	if minor < release.Oldest { // as in knownArguments
		return
	}
	table := argumentsOf("etcd")
	for i, v := range local.Env {
		name, ok := strings.CutPrefix(v.Name, "ETCD_")
		if !ok || r.refused(at.Index(i)) {
			continue
		}
		name = strings.ToLower(strings.ReplaceAll(name, "_", "-"))
		known, found := table[name]
		given := slices.Contains(etcdOfKubeadm(), name) || lastArgument(local.Args, name) >= 0
		switch {
		case found && given:
			r.refuse(true, at.Index(i)+".name", "is "+name+", which the command line of etcd has as well, and etcd does not start with both", "write it in args alone")
		case local.Image != nil || name == "unsupported-arch":
		case !found || minor < known.first || known.last < min(minor, release.Newest):
			r.warn(at.Index(i)+".name", "is none of the variables that this etcd reads, and has no effect: see etcd --help for its arguments")
		default:
			message, hint := argumentFault("etcd", known.what, name, v.Value, minor)
			r.refuse(message != "", at.Index(i)+".value", message, hint)
		}
	}
}
