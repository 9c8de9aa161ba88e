package settings

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func (r *resolver) cluster(at document.Path, c v1alpha1.KubernetesCluster) {
	r.matches(at+".name", c.Name, clusterName, "is not the name of a cluster", "use letters, digits, ., _ and -")
	r.address(at+".endpoint", c.Endpoint)
	r.endpoint(at+".endpoint", c.Endpoint)
	r.refuse(c.DNSDomain != "" && !v1alpha1.IsSubdomain(c.DNSDomain), at+".dnsDomain", "is not a DNS domain", "write it in lower case, like cluster.local")
	r.subnets(at, c)
	r.matches(at+".imageRepository", c.ImageRepository, repository, "is not HOST/PATH", "write it like registry.example.com/kubernetes")
	r.componentImage(at+".dnsImage", c.DNSImage, "v1.12.1")
	r.subjects(at+".certificateSANs", c.CertificateSANs)
	if c.CertificatesDir != "" {
		r.directoryPath(at+".certificatesDir", c.CertificatesDir)
	}
	r.duration(at+".certificateValidity", c.CertificateValidity)
	r.duration(at+".caCertificateValidity", c.CACertificateValidity)
	own, _ := time.ParseDuration(cmp.Or(c.CertificateValidity, "8760h"))
	if authority, err := time.ParseDuration(c.CACertificateValidity); err == nil && 0 < authority && authority < own {
		r.warn(at+".caCertificateValidity", "is shorter than certificateValidity, by default 8760h: when the authorities expire, so does every certificate that they have signed")
	}
	r.spec.Cluster.CertificatesDir = cmp.Or(c.CertificatesDir, DefaultCertificatesDir)
}

// endpoint refuses an address that no machine has, and warns of one that each machine has for itself.
func (r *resolver) endpoint(at document.Path, text string) {
	host, _, _ := net.SplitHostPort(text) // address refuses a text without a host
	ip, _ := netip.ParseAddr(host)
	r.refuse(ip.IsValid() && (ip.IsUnspecified() || ip.IsMulticast()), at, "is no address of a machine", "write the address or the name under which all nodes reach the API server")
	if r.spec.Role == Init && (ip.IsLoopback() || host == "localhost") {
		r.warn(at, "is this machine for each machine: other nodes reach the API server only if each has a balancer of its own at this address")
	}
}

// subjects refuses what a certificate cannot have as the name of its subject.
func (r *resolver) subjects(at document.Path, names []string) {
	for i, name := range names {
		ip, err := netip.ParseAddr(name)
		r.refuse((err != nil || ip.Zone() != "") && (len(name) > 253 || !wildcard().MatchString(name)), at.Index(i), "is neither a DNS name nor an IP address", "write a name in lower case, such as api.example.com")
	}
}

// kubeadm checks the fields that steer kubeadm itself.
func (r *resolver) kubeadm() {
	phases, checks := map[string]document.Path{}, map[string]document.Path{}
	for i, name := range r.spec.SkipPhases {
		at := document.Path("spec.skipPhases").Index(i)
		known := slices.Concat(phasesOf(Init), phasesOf(Join))
		if !slices.Contains(known, name) {
			hint := "see kubeadm init phase --help and kubeadm join phase --help"
			if near := document.Nearest(name, known); near != "" {
				hint = "did you mean " + near + "?"
			}
			r.refuse(true, at, "is not the name of a phase", hint)
		}
		r.unique(at, phases, name)
	}
	r.spec.SkipPhases = slices.DeleteFunc(slices.Clone(r.spec.SkipPhases), r.otherCommand)
	for i, name := range r.spec.IgnorePreflightErrors {
		at := document.Path("spec.ignorePreflightErrors").Index(i)
		r.refuse(!check().MatchString(name), at, "is not the name of a check", "write it as kubeadm prints it in [ERROR NAME], such as NumCPU")
		r.refuse(strings.EqualFold(name, "all"), at, "means every check", "set spec.ignoreAllPreflightErrors instead")
		r.unique(at, checks, strings.ToLower(name))
		kind, _, _ := strings.Cut(strings.ToLower(name), "-")
		if names := strings.Fields(preflightChecks); !slices.Contains(names, kind) && check().MatchString(name) {
			hint := "remove it"
			if near := document.Nearest(kind, names); near != "" {
				hint = "did you mean " + near + "?"
			}
			r.warn(at, "is the name of no check that kubeadm is known to have, which ignores it: "+hint)
		}
	}
	if t := r.spec.Timeouts; t != nil {
		const at = document.Path("spec.timeouts")
		r.duration(at+".controlPlane", t.ControlPlane)
		r.duration(at+".kubelet", t.Kubelet)
		r.duration(at+".kubernetesAPI", t.KubernetesAPI)
		r.duration(at+".etcdAPI", t.EtcdAPI)
		r.duration(at+".tlsBootstrap", t.TLSBootstrap)
		r.duration(at+".discovery", t.Discovery)
	}
}

// otherCommand reports whether a phase is one of kubeadm init while this node joins, or the reverse. kubeadm refuses to leave out a phase
// that a command does not have, although it leaves it out; nodes of several roles share a list.
func (r *resolver) otherCommand(phase string) bool {
	if r.spec.Role == Init {
		return !slices.Contains(phasesOf(Init), phase)
	}
	return !slices.Contains(phasesOf(Join), phase)
}

// phasesOf returns the phases of kubeadm init, or of kubeadm join, in any release from 1.30 to 1.37. Source: kubeadm, app/cmd/phases.
func phasesOf(role string) []string {
	tree := "preflight,certs:all ca apiserver apiserver-kubelet-client front-proxy-ca front-proxy-client etcd-ca etcd-server etcd-peer " +
		"etcd-healthcheck-client apiserver-etcd-client sa,kubeconfig:all admin super-admin kubelet controller-manager scheduler,etcd:local," +
		"control-plane:all apiserver controller-manager scheduler,kubelet-start,wait-control-plane,upload-config:all kubeadm kubelet,upload-certs," +
		"mark-control-plane,bootstrap-token,kubelet-finalize:all experimental-cert-rotation enable-client-cert-rotation," +
		"addon:all coredns kube-proxy,show-join-command"
	if role != Init {
		tree = "preflight,control-plane-prepare:all download-certs certs kubeconfig control-plane,check-etcd,kubelet-start,etcd-join," +
			"kubelet-wait-bootstrap,control-plane-join:all etcd update-status mark-control-plane,wait-control-plane"
	}
	var all []string
	for part := range strings.SplitSeq(tree, ",") {
		root, inside, _ := strings.Cut(part, ":")
		all = append(all, root)
		for _, name := range strings.Fields(inside) {
			all = append(all, root+"/"+name)
		}
	}
	return all
}

// preflightChecks are the checks of kubeadm 1.30 to 1.37, or how their names begin. kubeadm does not look at the case. Source: app/preflight.
const preflightChecks = "containerruntimeversion cri diravailable externaletcdclientcertificates externaletcdversion fileavailable filecontent fileexisting firewalld hostname " +
	"httpproxy httpproxycidr imagepull isprivilegeduser kubeletversion kubernetesversion mem numcpu port service swap systemverification"
