package controller

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/kubernetesnode"
)

// certificates adds what the role of the machine needs: a worker gets the digest of the authority, never a key.
func (w *work) certificates(ctx context.Context, f *kubernetesnode.Facts, spec *contract.KubernetesNodeSpec) error {
	var etcd *contract.ExternalEtcd
	if spec.Etcd != nil {
		etcd = spec.Etcd.External
	}
	if f.Role == contract.ControlPlaneInit && !w.cluster.Spec.ControlPlaneRef.IsDefined() {
		if err := w.generate(ctx, etcd != nil); err != nil {
			return err
		}
	}
	var err error
	if f.Role == contract.Worker {
		err = w.workerCertificates(ctx, f)
	} else {
		err = w.controlPlaneCertificates(ctx, f, etcd)
	}
	if err == nil {
		reached(w.config, bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonAvailable)
	}
	return err
}

// generate makes the authorities of a cluster that no control plane provider makes. An external etcd has its own.
func (w *work) generate(ctx context.Context, externalEtcd bool) error {
	all := secret.NewCertificatesForInitialControlPlane(nil)
	if externalEtcd {
		all = slices.DeleteFunc(all, func(c *secret.Certificate) bool { return c.Purpose == secret.EtcdCA })
	}
	live := liveReads{w.r.Client, w.r.Live}
	// They belong to the Cluster, because they outlive the Machine that comes first.
	err := all.LookupOrGenerate(ctx, live, client.ObjectKeyFromObject(w.cluster), clusterOwner(w.cluster))
	if apierrors.IsAlreadyExists(err) {
		err = all.Lookup(ctx, live, client.ObjectKeyFromObject(w.cluster))
	}
	if err != nil {
		return fmt.Errorf("generate the certificate authorities of Cluster %s: %w", w.cluster.Name, err)
	}
	return nil
}

// liveReads is a client that reads from the API server.
type liveReads struct {
	client.Client
	live client.Reader
}

func (l liveReads) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	return l.live.Get(ctx, key, into, options...)
}

func (w *work) workerCertificates(ctx context.Context, f *kubernetesnode.Facts) error {
	name := secret.Name(w.cluster.Name, secret.ClusterCA)
	certificate, err := w.authority(ctx, name)
	if err != nil {
		return err
	}
	if f.CACertHashes, err = certificateHashes(certificate["tls.crt"]); err != nil {
		return invalid(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonInvalidCertificates, "Secret %s: tls.crt: %s", name, err)
	}
	return nil
}

func (w *work) controlPlaneCertificates(ctx context.Context, f *kubernetesnode.Facts, etcd *contract.ExternalEtcd) error {
	f.Certificates = &contract.ClusterCertificates{}
	pairs := map[secret.Purpose]**contract.KeyPair{
		secret.ClusterCA: &f.Certificates.CA, secret.FrontProxyCA: &f.Certificates.FrontProxyCA,
		secret.EtcdCA: &f.Certificates.EtcdCA, secret.ServiceAccount: &f.Certificates.ServiceAccount,
	}
	if etcd != nil {
		delete(pairs, secret.EtcdCA) // nothing on the machine signs for it
		if err := w.externalEtcd(ctx, etcd); err != nil {
			return err
		}
	}
	for purpose, into := range pairs {
		check := contract.KeyPair.CheckClusterAuthority
		if purpose == secret.ServiceAccount {
			check = contract.KeyPair.CheckServiceAccount
		}
		pair, err := w.keyPair(ctx, purpose, check)
		if err != nil {
			return err
		}
		*into = pair
	}
	if f.Role == contract.ControlPlaneJoin {
		return w.workerCertificates(ctx, f)
	}
	return nil
}

// externalEtcd adds the certificates for an external etcd, if the document has none. Their Secrets are those that every provider of Cluster
// API takes them from: CLUSTER-etcd, whose key is unused, and CLUSTER-apiserver-etcd-client.
func (w *work) externalEtcd(ctx context.Context, etcd *contract.ExternalEtcd) error {
	plain := func(endpoint string) bool { return !strings.HasPrefix(endpoint, "https://") }
	if etcd.CA != "" || etcd.Cert != "" || etcd.Key != nil || slices.ContainsFunc(etcd.Endpoints, plain) {
		return nil
	}
	name := secret.Name(w.cluster.Name, secret.EtcdCA)
	found, err := w.authority(ctx, name)
	if err != nil {
		return err
	}
	if _, err := contract.CertificateOf(string(found["tls.crt"])); err != nil {
		return invalid(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonInvalidCertificates,
			"Secret %s: tls.crt, of an external etcd, %s", name, err)
	}
	pair, err := w.keyPair(ctx, secret.APIServerEtcdClient, contract.KeyPair.Check)
	if err != nil {
		return err
	}
	etcd.CA, etcd.Cert, etcd.Key = string(found["tls.crt"]), pair.Certificate, &pair.Key
	return nil
}

// keyPair reads what every node would refuse, too.
func (w *work) keyPair(ctx context.Context, purpose secret.Purpose, check func(contract.KeyPair) (string, error)) (*contract.KeyPair, error) {
	name := secret.Name(w.cluster.Name, purpose)
	found, err := w.authority(ctx, name)
	if err != nil {
		return nil, err
	}
	certificate, key := found["tls.crt"], found["tls.key"]
	if len(certificate) == 0 || len(key) == 0 {
		return nil, invalid(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonInvalidCertificates,
			"Secret %s: tls.crt and tls.key are required for a control plane", name)
	}
	pair := contract.KeyPair{Certificate: string(certificate), Key: contract.NewSecret(key)}
	if field, err := check(pair); err != nil {
		return nil, invalid(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonInvalidCertificates,
			"Secret %s: %s %s", name, map[string]string{"certificate": "tls.crt", "key": "tls.key"}[field], err)
	}
	return &pair, nil
}

// authority reads the Secret of a certificate authority, which its provider may not have made yet.
func (w *work) authority(ctx context.Context, name string) (map[string][]byte, error) {
	found, err := w.reading.body(ctx, "Secret", name)
	if apierrors.IsNotFound(err) {
		return nil, waiting(bootstrap.ConditionCertificatesAvailable, bootstrap.ReasonWaitingForCertificates, "Secret %s does not exist yet", name)
	} else if err != nil {
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return found.values, nil
}

// certificateHashes are the digests of the public keys of authorities, in the form of kubeadm's --discovery-token-ca-cert-hash.
func certificateHashes(authorities []byte) ([]string, error) {
	var hashes []string
	for len(authorities) > 0 {
		block, rest := pem.Decode(authorities)
		if block == nil {
			break
		}
		authorities = rest
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, errors.New("a certificate cannot be read")
		}
		hashes = append(hashes, fmt.Sprintf("sha256:%x", sha256.Sum256(certificate.RawSubjectPublicKeyInfo)))
	}
	if len(hashes) == 0 {
		return nil, errors.New("there is no certificate in PEM form")
	}
	return hashes, nil
}
