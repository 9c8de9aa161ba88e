package settings

import (
	"bytes"
	"encoding/json"
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
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

// effects warns of fields of the kubelet that are valid and do harm, and refuses the ones with which it does not start.
func (t together) effects() {
	const at = document.Path("spec.kubelet.config")
	r, k := t.r, t.k
	place := func(field string) document.Path { return t.at(field, at.Field(field)) }
	if suites, _ := k["tlsCipherSuites"].([]any); len(suites) > 0 && !r.patched("tlsCipherSuites") && !r.patched("tlsMinVersion") {
		var names []string
		for _, suite := range suites {
			names = append(names, fmt.Sprint(suite))
		}
		version, _ := k["tlsMinVersion"].(string)
		r.cipherList(place("tlsCipherSuites"), names, version, true)
	}
	if fmt.Sprint(k["healthzPort"]) == "0" {
		r.warn(place("healthzPort"), "turns off the address at which kubeadm waits for the kubelet, in vain: remove it")
	}
	if k["serverTLSBootstrap"] == true && k["tlsCertFile"] != nil {
		r.warn(place("tlsCertFile"), "has no effect with serverTLSBootstrap, with which the kubelet asks the cluster for its certificate: remove one of the two")
	}
	if t.number("nodeLeaseDurationSeconds", 40) >= 160 {
		r.warn(place("nodeLeaseDurationSeconds"), "is renewed after a quarter of it, later than the 40s after which the controller manager takes a node for lost: use 40, or set its node-monitor-grace-period to more than half of it")
	}
	if k["enableServer"] == false {
		r.warn(place("enableServer"), "keeps kubectl logs and exec, and metrics, from this node: remove it")
	}
	if ip := net.ParseIP(fmt.Sprint(k["address"])); ip != nil && ip.IsLoopback() {
		r.warn(place("address"), "is an address at which the API server does not reach the kubelet, for kubectl logs and exec: remove it")
	}
	if k["resolvConf"] == "/run/systemd/resolve/stub-resolv.conf" {
		r.warn(place("resolvConf"), "names the resolver of systemd on a loopback address, with which the DNS server of the cluster asks itself and stops: use /run/systemd/resolve/resolv.conf")
	}
	authentication, _ := k["authentication"].(map[string]any)
	anonymous, _ := authentication["anonymous"].(map[string]any)
	authorization, _ := k["authorization"].(map[string]any)
	if anonymous["enabled"] == true && authorization["mode"] == "AlwaysAllow" {
		r.warn(place("authorization"), "lets everyone who reaches the port of the kubelet run commands in all containers: use mode Webhook")
	}
	if size, _ := k["containerLogMaxSize"].(string); strings.HasSuffix(size, "m") {
		r.refuse(!r.patched("containerLogMaxSize"), place("containerLogMaxSize"), "is less than a byte: m is a thousandth", "write Mi for mebibytes, such as 10Mi")
	}
	t.smallAmounts()
	t.softBelowHard()
	options, _ := k["topologyManagerPolicyOptions"].(map[string]any)
	for name, valid := range map[string]func(string) error{
		"prefer-closest-numa-nodes":  func(text string) error { _, err := strconv.ParseBool(text); return err },
		"max-allocatable-numa-nodes": func(text string) error { _, err := strconv.Atoi(text); return err },
	} {
		text, is := options[name].(string)
		r.refuse(is && valid(text) != nil, place("topologyManagerPolicyOptions").Field(name), "is not a value of this option, and the kubelet does not start", `write "true", or a number of nodes`)
	}
}

// smallAmounts warns of amounts without a unit, which are bytes and whole cores.
func (t together) smallAmounts() {
	for _, field := range []string{"systemReserved", "kubeReserved"} {
		amounts, _ := t.k[field].(map[string]any)
		at := t.at(field, document.Path("spec.kubelet").Field(field))
		for _, resource := range []string{"memory", "ephemeral-storage"} {
			text, _ := amounts[resource].(string)
			if n := amount(text); quantity().MatchString(text) && !strings.HasSuffix(text, "m") && n >= 1 && n < 1<<20 {
				t.r.warn(at.Key(resource), "is less than a mebibyte: without a unit it is bytes; write it like 500Mi")
			}
		}
		if text, _ := amounts["cpu"].(string); quantity().MatchString(text) && amount(text) >= 50 && amount(text) == float64(int(amount(text))) && !strings.HasSuffix(text, "m") {
			t.r.warn(at.Key("cpu"), "is a number of whole cores, and the kubelet does not start on a machine with fewer: for thousandths write m, such as 500m")
		}
	}
}

// softBelowHard warns of a soft threshold that is never crossed before the hard one.
func (t together) softBelowHard() {
	hard, _ := t.k["evictionHard"].(map[string]any)
	soft, _ := t.k["evictionSoft"].(map[string]any)
	defaults := map[string]string{"memory.available": "100Mi", "nodefs.available": "10%", "nodefs.inodesFree": "5%", "imagefs.available": "15%", "imagefs.inodesFree": "5%"}
	for _, signal := range signals() {
		low, is := soft[signal].(string)
		high, _ := hard[signal].(string)
		if hard == nil {
			high = defaults[signal]
		}
		lowPercent, a := strings.CutSuffix(low, "%")
		highPercent, b := strings.CutSuffix(high, "%")
		if !is || high == "" || a != b || !a && (!quantity().MatchString(low) || !quantity().MatchString(high)) {
			continue
		}
		if amount(lowPercent) <= amount(highPercent) && amount(highPercent) > 0 {
			t.r.warn(t.at("evictionSoft", "spec.kubelet.config.evictionSoft").Key(signal), "is not above the threshold of evictionHard, which evicts first and without a grace period: make it larger")
		}
	}
}

// specialNetworks refuses ranges whose addresses no pod or service can have. Sources: ValidateNonSpecialIP of Kubernetes, RFC 6890.
func (r *resolver) specialNetworks() {
	for name, values := range map[string][]string{"podSubnets": r.spec.Cluster.PodSubnets, "serviceSubnets": r.spec.Cluster.ServiceSubnets} {
		for i, value := range values {
			p, err := netip.ParsePrefix(value)
			linkLocal := name == "podSubnets" && p.Addr().IsLinkLocalUnicast()
			bad := err == nil && (p.Addr().IsLoopback() || p.Addr().IsMulticast() || linkLocal || p.Addr().Is4() && p.Addr().As4()[0] == 0)
			r.refuse(bad, document.Path("spec.cluster").Field(name).Index(i), "is a range of loopback, link-local, multicast or unspecified addresses, which no other machine reaches",
				"use a private range, such as 10.244.0.0/16 or fd00:10:244::/56")
		}
	}
}

// nodeEffects looks at fields of the node and of the cluster that do not go together.
func (r *resolver) nodeEffects() {
	n, c := r.spec.Node, r.spec.Cluster
	r.refuse(len(r.result.NodeName) > 63 && n.Labels["kubernetes.io/hostname"] == "", "spec.node", "the name has more than 63 characters: the kubelet sets it as the label kubernetes.io/hostname, which cannot be longer, and the API server refuses the Node",
		"set a shorter spec.node.name")
	for _, name := range []string{"os", "arch", "hostname"} {
		if value, set := n.Labels["kubernetes.io/"+name]; set && (name != "hostname" || value != n.Name) {
			r.warn(document.Path("spec.node.labels").Key("kubernetes.io/"+name), "replaces what the kubelet says of the machine, by which pods and volumes find their node: remove it")
		}
	}
	if n.Register != nil && !*n.Register && (len(n.Labels) > 0 || len(n.Taints) > 0) {
		r.warn("spec.node.register", "is false, so that the labels and taints of spec.node have no effect: whatever creates the Node sets them")
	}
	host, port, err := net.SplitHostPort(c.Endpoint)
	if known := map[string]string{"2379": "etcd", "2380": "etcd", "10250": "the kubelet", "10257": "the controller manager", "10259": "the scheduler"}[port]; err == nil && known != "" {
		r.warn("spec.cluster.endpoint", "has the port of "+known+": the API server has 6443 by default")
	}
	own := "6443"
	if n.AdvertisePort != nil {
		own = strconv.Itoa(*n.AdvertisePort)
	}
	if ip, err := netip.ParseAddr(host); err == nil && r.spec.Role == Init && ip == r.result.Advertised && port != own {
		r.warn("spec.cluster.endpoint", "is the address of this machine with another port than the API server's: use that port, unless a load balancer of this machine has the other one")
	}
	domain := c.DNSDomain
	if domain == "" {
		domain = "cluster.local"
	}
	if r.spec.Role == Init && (host == domain || strings.HasSuffix(host, "."+domain)) {
		r.warn("spec.cluster.dnsDomain", "has the name of spec.cluster.endpoint, which pods do not find, because the DNS server of the cluster answers for the whole domain: use a domain that nothing else has")
	}
	if lifetime, err := time.ParseDuration(c.CertificateValidity); err == nil && lifetime > 0 && lifetime < 24*time.Hour {
		r.warn("spec.cluster.certificateValidity", "is less than a day, and nothing renews these certificates but kubeadm certs renew and an upgrade: use a longer time, such as 8760h")
	}
	if d := c.DNSImage; d != nil && path.Base(d.Repository) == "coredns" && path.Base(path.Dir(d.Repository)) == "coredns" {
		r.warn("spec.cluster.dnsImage.repository", "ends with the name of the image, which kubeadm appends once more: remove the last /coredns")
	}
	token := r.spec.Discovery != nil && r.spec.Discovery.Token != nil
	for i, phase := range r.spec.SkipPhases {
		field := document.Path("spec.skipPhases").Index(i)
		switch {
		case r.spec.Role == Init && (phase == "upload-config" || phase == "upload-config/kubeadm" || phase == "upload-config/kubelet"):
			r.warn(field, "leaves out the configuration of the cluster, without which no node joins: remove it")
		case r.spec.Role == Init && phase == "bootstrap-token" && token:
			r.warn(field, "leaves out the phase that creates the token of spec.discovery, and no node joins with it: remove one of the two")
		case r.spec.Role == Init && phase == "addon/kube-proxy" && r.spec.KubeProxy != nil && !r.spec.KubeProxy.Skip:
			r.warn(field, "leaves out kube-proxy, so that spec.kubeProxy has no effect: remove one of the two")
		case r.spec.Role != Init && phase == "kubelet-start":
			r.warn(field, "leaves out the phase that starts the kubelet and registers the node: remove it")
		}
	}
	if p := r.spec.KubeProxy; p != nil {
		gates, _ := r.result.KubeProxy["featureGates"].(map[string]any)
		r.refuse(p.Mode == "nftables" && r.result.Version.Minor == release.Oldest && gates["NFTablesProxyMode"] != true, "spec.kubeProxy.mode", "needs the feature gate NFTablesProxyMode before 1.31, without which kube-proxy does not start",
			"set it in spec.kubeProxy.config.featureGates")
		local, _ := r.result.KubeProxy["detectLocal"].(map[string]any)
		for field, mode := range map[string]string{"interfaceNamePrefix": "InterfaceNamePrefix", "bridgeInterface": "BridgeInterface"} {
			if text, _ := local[field].(string); text != "" && r.result.KubeProxy["detectLocalMode"] != mode {
				r.warn(document.Path("spec.kubeProxy.config.detectLocal").Field(field), "has no effect without detectLocalMode: "+mode)
			}
		}
	}
}

var (
	execStart    = lazyregexp.New(`(?m)^[ \t]*ExecStart[ \t]*=[ \t]*(.*)$`)
	serviceFile  = lazyregexp.New(`^/etc/systemd/system/(kubelet|containerd)\.service\.d/[^/]+\.conf$`)
	networkFile  = lazyregexp.New(`^/etc/cni/net\.d/[^/]+\.conflist$`)
	kubeletFlags = lazyregexp.New(`\$\{?KUBELET_CONFIG_ARGS|--config[= ]`)
)

// fileEffects looks at what files are for.
func (r *resolver) fileEffects() {
	// keptElsewhere has the files that only a restart of their service, or a boot, brings into force, with the kind of the document that does so at once.
	keptElsewhere := []struct {
		files *regexp.Regexp
		kind  string
	}{
		{regexp.MustCompile(`^/etc/(sysctl\.conf|sysctl\.d/.*|modules-load\.d/.*)$`), "Sysctl"},
		{regexp.MustCompile(`^/etc/containerd/(config\.toml|conf\.d/.*)$`), "ContainerRuntime"},
		{regexp.MustCompile(`^/etc/(chrony\.conf|chrony/.*|chrony\.d/.*|ntp\.conf|ntpsec/.*|ntp\.d/.*|systemd/timesyncd\.conf.*)$`), "Timesync"},
		{regexp.MustCompile(`^/etc/(krb5\.conf|krb5\.conf\.d/.*|sssd/.*)$`), "DomainJoin"},
	}
	for _, f := range r.result.Files {
		at := document.Path(f.Field)
		for _, kept := range keptElsewhere {
			if kept.files.MatchString(f.Path) {
				r.warn(at+".path", "is read at the start of a service or at a boot, and nothing brings it into force before: use a document "+kept.kind)
			}
		}
		if slices.Contains([]string{"/etc/passwd", "/etc/shadow", "/etc/group", "/etc/gshadow", "/etc/fstab"}, f.Path) {
			r.warn(at+".path", "is replaced as a whole, with the entries that the system has in it")
		}
		text := strings.TrimRight(string(f.Content), "\r\n")
		if strings.HasPrefix(text, "#!") && !strings.Contains(text, "\n") {
			r.warn(at, "is a script of one line, its interpreter, which does nothing: the YAML form > joins lines, use |")
		}
		r.dropIn(at, f)
		if networkFile().MatchString(f.Path) {
			var list struct {
				Name    string            `json:"name"`
				Plugins []json.RawMessage `json:"plugins"`
			}
			bad := json.Unmarshal(bytes.TrimSpace(f.Content), &list) != nil || list.Name == "" || len(list.Plugins) == 0
			r.refuse(bad, at, "is no list of network plugins: it is not JSON, or has no name or no plugins, and the container runtime has no network", `write {"cniVersion": "1.0.0", "name": "site", "plugins": [...]}`)
		}
	}
}

// dropIn looks at the commands of a drop-in of a service that has one command.
func (r *resolver) dropIn(at document.Path, f File) {
	service := serviceFile().FindStringSubmatch(f.Path)
	if service == nil {
		return
	}
	commands := execStart().FindAllSubmatch(f.Content, -1)
	if len(commands) == 0 {
		return
	}
	r.refuse(len(bytes.TrimSpace(commands[0][1])) > 0, at, "adds a second ExecStart= to the service, which systemd then does not load", "begin with an empty line ExecStart=")
	last := commands[len(commands)-1][1]
	if service[1] == "kubelet" && !kubeletFlags().Match(last) {
		r.warn(at, "starts the kubelet without the configuration that kubeadm writes, unless the command adds it: write $KUBELET_CONFIG_ARGS, as 10-kubeadm.conf of the package does")
	}
}
