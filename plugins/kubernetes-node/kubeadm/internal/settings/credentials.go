package settings

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net/url"
	"slices"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func (r *resolver) discovery(at document.Path, d *v1alpha1.Discovery) {
	joins := r.spec.Role == Join || r.spec.Role == Worker
	if key := r.spec.CertificateKey; key != nil {
		r.refuse(!hexKey().Match(key.Reveal()), "spec.certificateKey", "must have 64 hexadecimal digits", "kubeadm certs certificate-key prints one")
	}
	if d == nil {
		r.refuse(joins, at, "is required to join a cluster", "give a token with caCertHashes, or a kubeconfig")
		return
	}
	if d.Token != nil {
		r.refuse(!token().Match(d.Token.Reveal()), at+".token", "is not a bootstrap token", "kubeadm token create prints one")
	}
	for i, h := range d.CACertHashes {
		r.refuse(!hash().MatchString(h), (at + ".caCertHashes").Index(i), "is not the hash of a public key", "write sha256: and 64 hexadecimal digits")
	}
	r.address(at+".endpoint", d.Endpoint)
	switch {
	case d.Kubeconfig != nil:
		config, err := document.JSON("", d.Kubeconfig.Reveal())
		kind, _ := objectOf(config)["kind"].(string)
		if !r.refuse(err != nil || kind != "Config", at+".kubeconfig", "is not a kubeconfig", "give the content of the file, in YAML or JSON, with kind Config") && joins {
			r.invalid(checkKubeconfig(objectOf(config)), at+".kubeconfig", "")
		}
	case joins && d.Token == nil:
		r.refuse(true, at, "has neither a token nor a kubeconfig", "give one of the two")
	case joins:
		r.refuse(d.Endpoint == "" && r.spec.Cluster.Endpoint == "", at+".endpoint", "is required without spec.cluster.endpoint", "")
	}
}

// checkKubeconfig returns an error for a kubeconfig with which kubeadm has no cluster to join, or no credentials to do so. Source: kubeadm,
// app/discovery, GetClusterFromKubeConfig and HasAuthenticationCredentials.
func checkKubeconfig(config map[string]any) error {
	named := func(list, name, inside string) map[string]any {
		items, _ := config[list].([]any)
		for _, item := range items {
			if entry, _ := item.(map[string]any); entry["name"] == any(name) {
				object, _ := entry[inside].(map[string]any)
				return object
			}
		}
		return nil
	}
	text := func(object map[string]any, name string) string { value, _ := object[name].(string); return value }
	context := named("contexts", text(config, "current-context"), "context")
	cluster, user := named("clusters", "", "cluster"), named("users", text(context, "user"), "user")
	if cluster == nil {
		cluster = named("clusters", text(context, "cluster"), "cluster")
	}
	has := func(names ...string) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return user[name] == nil || user[name] == "" })
	}
	key := has("client-key") || has("client-key-data")
	switch {
	case cluster == nil:
		return errors.New("has no cluster in its current-context, which kubeadm would join")
	case text(cluster, "server") == "":
		return errors.New("has no server for the cluster of its current-context")
	case !has("token") && !has("tokenFile") && !has("exec") && !has("auth-provider") && !has("username", "password") &&
		(!key || !has("client-certificate") && !has("client-certificate-data")):
		return errors.New("has no credentials for the user of its current-context, with which the kubelet would ask for its certificate")
	}
	return nil
}

func (r *resolver) certificates(at document.Path, c *v1alpha1.ClusterCertificates) {
	if c == nil {
		return
	}
	r.refuse(r.spec.Role == Join && r.spec.CertificateKey != nil, at, "is given as well as spec.certificateKey, which downloads them", "remove one of the two")
	given := false
	for _, p := range []struct {
		field document.Path
		pair  *v1alpha1.KeyPair
		file  string
		check func(v1alpha1.KeyPair) (string, error)
	}{
		{".ca", c.CA, "ca", v1alpha1.KeyPair.CheckClusterAuthority},
		{".frontProxyCA", c.FrontProxyCA, "front-proxy-ca", v1alpha1.KeyPair.CheckClusterAuthority},
		{".etcdCA", c.EtcdCA, "etcd/ca", v1alpha1.KeyPair.CheckClusterAuthority},
		{".serviceAccount", c.ServiceAccount, "sa", v1alpha1.KeyPair.CheckServiceAccount},
	} {
		if p.pair == nil {
			continue
		}
		given = true
		field, err := p.check(*p.pair)
		r.invalid(err, at+p.field+document.Path("."+field), "give a certificate and its key, not encrypted, in PEM format")
		certificate := p.file + ".crt"
		if p.file == "sa" {
			certificate = "sa.pub"
		}
		r.credential(at+p.field+".certificate", certificate, []byte(p.pair.Certificate), 0o644)
		r.credential(at+p.field+".key", p.file+".key", p.pair.Key.Reveal(), 0o600)
	}
	r.refuse(!given, at, "has no certificate", "remove it, or give one")
}

// credential adds a file in the directory of certificates.
func (r *resolver) credential(field document.Path, name string, content []byte, mode fs.FileMode) {
	r.result.Credentials = append(r.result.Credentials, File{Field: string(field), FileSpec: sdk.FileSpec{
		Path: r.spec.Cluster.CertificatesDir + "/" + name, Content: content, Mode: mode, Owner: &sdk.Owner{}, Sensitive: mode == 0o600,
	}})
}

func (r *resolver) etcd(at document.Path, e *v1alpha1.Etcd) {
	if e == nil {
		return
	}
	if l := e.Local; l != nil {
		if l.DataDir != "" {
			r.directoryPath(at+".local.dataDir", l.DataDir)
		}
		r.arguments(at+".local.args", l.Args)
		r.etcdTraps(at+".local.args", l.Args)
		if r.etcdPairs(at+".local.args", l.Args); l.Image == nil {
			r.knownArguments(at+".local.args", "etcd", l.Args, r.result.Version.Minor)
		}
		r.environment(at+".local.env", l.Env)
		r.etcdVariables(at+".local.env", *l)
		r.subjects(at+".local.serverCertificateSANs", l.ServerCertificateSANs)
		r.subjects(at+".local.peerCertificateSANs", l.PeerCertificateSANs)
		r.componentImage(at+".local.image", l.Image, "3.6.5-0")
	}
	if e.External != nil {
		r.externalEtcd(at+".external", *e.External)
	}
}

func (r *resolver) externalEtcd(at document.Path, e v1alpha1.ExternalEtcd) {
	secure := e.CA != "" || e.Cert != "" || e.Key != nil
	r.refuse(len(e.Endpoints) == 0, at+".endpoints", "is empty", "write them like https://etcd-0.example.com:2379")
	for i, endpoint := range e.Endpoints {
		if at := (at + ".endpoints").Index(i); !r.invalid(checkURL(endpoint, !secure), at, "write it like https://etcd-0.example.com:2379") {
			u, err := url.Parse(endpoint)
			r.refuse(err == nil && u.Port() == "", at, "has no port, without which the API server does not connect", "write it like https://etcd-0.example.com:2379")
		}
	}
	if !secure {
		return
	}
	_, err := v1alpha1.CertificateOf(e.CA)
	r.invalid(err, at+".ca", "give the certificate of the authority in PEM format")
	r.credential(at+".ca", "external-etcd/ca.crt", []byte(e.CA), 0o644)
	if e.Cert == "" || e.Key == nil {
		return
	}
	if _, err := v1alpha1.CertificateOf(e.Cert); !r.invalid(err, at+".cert", "give the certificate in PEM format") {
		_, err := tls.X509KeyPair([]byte(e.Cert), e.Key.Reveal())
		r.refuse(err != nil, at+".key", "is not the key of cert", "give it in PEM format, not encrypted")
	}
	r.credential(at+".cert", "external-etcd/client.crt", []byte(e.Cert), 0o644)
	r.credential(at+".key", "external-etcd/client.key", e.Key.Reveal(), 0o600)
}
