// Package member observes from the files of a machine, without running kubeadm, of which cluster it is a node, and decides
// what is left to do.
package member

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/sdk"
)

const (
	kubernetesDir = "/etc/kubernetes"
	kubeletConf   = kubernetesDir + "/kubelet.conf"
	// rotatedCert is the certificate and key of the kubelet once it has them from the cluster.
	rotatedCert = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// Path returns the path on an operating system of one below / on Linux. kubeadm uses the system drive of Windows.
func Path(goos, name string) string {
	if goos == "windows" {
		return `C:` + strings.ReplaceAll(name, "/", `\`)
	}
	return name
}

// Observed is what the files say. The zero Observed is a machine that kubeadm has not touched.
type Observed struct {
	// Node is the name in the kubelet's client certificate, empty without a complete kubelet.conf.
	Node string
	// Endpoint is the HOST:PORT of the API server that the node uses.
	Endpoint string
	// CAHash is the hash of the public key of the cluster's certificate authority, as in caCertHashes.
	CAHash string
	// ControlPlane reports the manifest of an API server.
	ControlPlane bool
	// Rotated reports that the kubelet uses a certificate that the cluster issued.
	Rotated bool
	// Left are the files that kubeadm has written, certificates excluded.
	Left []string
	// Certificates are the files in the certificate directory.
	Certificates []string
}

// Observe reads the files of kubeadm and of the kubelet.
func Observe(m sdk.Machine, certificatesDir string) (Observed, error) {
	var o Observed
	for _, name := range []string{
		"kubelet.conf", "bootstrap-kubelet.conf", "admin.conf", "super-admin.conf", "controller-manager.conf", "scheduler.conf",
		"manifests/kube-apiserver.yaml", "manifests/kube-controller-manager.yaml", "manifests/kube-scheduler.yaml",
		"manifests/etcd.yaml",
	} {
		file := Path(m.Target.OS, path.Join(kubernetesDir, name))
		switch _, err := m.FS.Lstat(file); {
		case err == nil:
			o.Left = append(o.Left, file)
			o.ControlPlane = o.ControlPlane || name == "manifests/kube-apiserver.yaml"
		case !absent(err):
			return o, err
		}
	}
	var err error
	if o.Certificates, err = certificates(m, certificatesDir); err != nil {
		return o, err
	}
	return o, o.readKubelet(m)
}

// certificates lists the certificates and keys in a directory and in its directory etcd.
func certificates(m sdk.Machine, dir string) ([]string, error) {
	var all []string
	for _, dir := range []string{dir, path.Join(dir, "etcd")} {
		names, err := m.FS.ReadDir(Path(m.Target.OS, dir))
		if err != nil && !absent(err) {
			return nil, err
		}
		for _, name := range names {
			if slices.Contains([]string{".crt", ".key", ".pub"}, path.Ext(name)) {
				all = append(all, Path(m.Target.OS, path.Join(dir, name)))
			}
		}
	}
	return all, nil
}

// readKubelet reads the identity of the node from kubelet.conf and from the certificate that it refers to.
func (o *Observed) readKubelet(m sdk.Machine) error {
	text, err := m.FS.ReadFile(Path(m.Target.OS, kubeletConf))
	if err != nil {
		return ignoreAbsent(err)
	}
	conf := parseKubeconfig(text)
	if err := conf.load(m); err != nil {
		return err
	}
	o.Rotated = strings.HasSuffix(strings.ReplaceAll(conf.CertificateFile, `\`, "/"), rotatedCert)
	leaf := firstCertificate(conf.Certificate)
	if leaf == nil {
		return nil // incomplete
	}
	name, isNode := strings.CutPrefix(leaf.Subject.CommonName, "system:node:")
	if !isNode {
		return nil
	}
	o.Node, o.CAHash, o.Endpoint = name, CertificateHash(conf.Authority), conf.host()
	// The kubelet of a control plane can use the API server of its own machine.
	if text, err = m.FS.ReadFile(Path(m.Target.OS, kubernetesDir+"/admin.conf")); err == nil {
		o.Endpoint = parseKubeconfig(text).host()
	}
	return ignoreAbsent(err)
}

type cluster struct {
	Server        string `json:"server"`
	Authority     []byte `json:"certificate-authority-data"`
	AuthorityFile string `json:"certificate-authority"`
}

type user struct {
	Certificate     []byte `json:"client-certificate-data"`
	Key             []byte `json:"client-key-data"`
	CertificateFile string `json:"client-certificate"`
	KeyFile         string `json:"client-key"`
}

// kubeconfig has the first cluster and the first user of a kubeconfig.
type kubeconfig struct {
	cluster
	user
}

// parseKubeconfig returns nothing of a text that it cannot read.
func parseKubeconfig(text []byte) (k kubeconfig) {
	var conf struct {
		Clusters []struct {
			Cluster cluster `json:"cluster"`
		} `json:"clusters"`
		Users []struct {
			User user `json:"user"`
		} `json:"users"`
	}
	data, err := document.JSON("", text)
	if err != nil || json.Unmarshal(data, &conf) != nil {
		return k
	}
	if len(conf.Clusters) > 0 {
		k.cluster = conf.Clusters[0].Cluster
	}
	if len(conf.Users) > 0 {
		k.user = conf.Users[0].User
	}
	return k
}

// load reads what the kubeconfig has in other files; what is absent stays empty.
func (k *kubeconfig) load(m sdk.Machine) error {
	for data, file := range map[*[]byte]string{&k.Authority: k.AuthorityFile, &k.Certificate: k.CertificateFile, &k.Key: k.KeyFile} {
		if len(*data) > 0 || file == "" {
			continue
		}
		if m.Target.OS == "windows" && !strings.Contains(file, ":") { // on the system drive
			file = Path(m.Target.OS, strings.ReplaceAll(file, `\`, "/"))
		}
		text, err := m.FS.ReadFile(file)
		if err != nil && !absent(err) {
			return err
		}
		*data = text
	}
	return nil
}

// host returns HOST:PORT of the server.
func (k kubeconfig) host() string { return strings.TrimPrefix(k.Server, "https://") }

// AuthorityHash returns the hash of the certificate authority in a kubeconfig; empty when it has none.
func AuthorityHash(text []byte) string { return CertificateHash(parseKubeconfig(text).Authority) }

// CertificateHash returns the hash of the public key of the first certificate in a PEM text, in the form of caCertHashes; empty
// when it has none.
func CertificateHash(text []byte) string {
	certificate := firstCertificate(text)
	if certificate == nil {
		return ""
	}
	sum := sha256.Sum256(certificate.RawSubjectPublicKeyInfo)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func firstCertificate(text []byte) *x509.Certificate {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if certificate, err := x509.ParseCertificate(block.Bytes); block.Type == "CERTIFICATE" && err == nil {
			return certificate
		}
	}
	return nil
}

func absent(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func ignoreAbsent(err error) error {
	if absent(err) {
		return nil
	}
	return err
}
