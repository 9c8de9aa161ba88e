package settings

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// DefaultCertificatesDir is the directory of certificates without spec.cluster.certificatesDir.
const DefaultCertificatesDir = "/etc/kubernetes/pki"

func (r *resolver) cluster(at document.Path, c v1alpha1.KubernetesCluster) {
	r.matches(at+".name", c.Name, clusterName, "is not the name of a cluster", "use letters, digits, ., _ and -")
	r.address(at+".endpoint", c.Endpoint)
	r.refuse(c.DNSDomain != "" && !v1alpha1.IsSubdomain(c.DNSDomain), at+".dnsDomain", "is not a DNS domain", "write it in lower case, like cluster.local")
	r.subnets(at, c)
	r.matches(at+".imageRepository", c.ImageRepository, repository, "is not HOST/PATH", "write it like registry.example.com/kubernetes")
	for i, name := range c.CertificateSANs {
		_, err := netip.ParseAddr(name)
		r.refuse(err != nil && !wildcard.MatchString(name), (at + ".certificateSANs").Index(i), "is neither a DNS name nor an IP address", "write a name in lower case, such as api.example.com")
	}
	if c.CertificatesDir != "" {
		r.directoryPath(at+".certificatesDir", c.CertificatesDir)
	}
	r.oneOf(at+".keyAlgorithm", c.KeyAlgorithm, "RSA-2048", "RSA-3072", "RSA-4096", "ECDSA-P256", "ECDSA-P384")
	r.duration(at+".certificateValidity", c.CertificateValidity)
	r.duration(at+".caCertificateValidity", c.CACertificateValidity)
	r.spec.Cluster.CertificatesDir = cmp.Or(c.CertificatesDir, DefaultCertificatesDir)
}

// kubeadm checks the fields that steer kubeadm itself.
func (r *resolver) kubeadm() {
	phases, checks := map[string]document.Path{}, map[string]document.Path{}
	for i, name := range r.spec.SkipPhases {
		at := document.Path("spec.skipPhases").Index(i)
		r.refuse(!phase.MatchString(name), at, "is not the name of a phase", "write it like addon/coredns")
		r.unique(at, phases, name)
	}
	r.spec.SkipPhases = slices.DeleteFunc(slices.Clone(r.spec.SkipPhases), r.otherCommand)
	for i, name := range r.spec.IgnorePreflightErrors {
		at := document.Path("spec.ignorePreflightErrors").Index(i)
		r.refuse(!check.MatchString(name), at, "is not the name of a check", "write it as kubeadm prints it in [ERROR NAME], such as NumCPU")
		r.refuse(strings.EqualFold(name, "all"), at, "stands for every check", "set spec.ignoreAllPreflightErrors instead")
		r.unique(at, checks, strings.ToLower(name))
	}
	r.refuse(r.spec.IgnoreAllPreflightErrors && len(checks) > 0, "spec.ignorePreflightErrors",
		"means nothing while spec.ignoreAllPreflightErrors is true", "remove one of the two")
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
// that a command does not have, although it leaves it out; nodes of several roles share a list. Source: kubeadm init phase --help and
// kubeadm join phase --help, of 1.30 to 1.37.
func (r *resolver) otherCommand(phase string) bool {
	root, _, _ := strings.Cut(phase, "/")
	if r.spec.Role == Init {
		return slices.Contains([]string{"control-plane-prepare", "control-plane-join", "etcd-join", "kubelet-wait-bootstrap"}, root)
	}
	return slices.Contains([]string{
		"certs", "kubeconfig", "etcd", "control-plane", "upload-config", "upload-certs", "mark-control-plane",
		"bootstrap-token", "kubelet-finalize", "addon", "show-join-command",
	}, root)
}
