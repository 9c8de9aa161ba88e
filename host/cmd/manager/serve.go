package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	reconcilers "github.com/machineadm/machineadm/host/controller"
	"github.com/machineadm/machineadm/host/controller/serve"
	"github.com/machineadm/machineadm/host/controller/store"
)

const (
	// authorityName is the Secret with the authority of the endpoint, in the namespace of the manager, and authorityType is its type.
	authorityName = "machineadm-server-authority"
	authorityType = corev1.SecretType("machineadm.cluster.x-k8s.io/server-authority")
	// namespaceFile is where Kubernetes writes the namespace of a pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
)

// serve adds the endpoint for machines to the manager, unless it is off.
func (o *options) serve(ctx context.Context, mgr manager.Manager, r *reconcilers.Reconciler) error {
	if o.serverAddress == off || o.serverAddress == "" { // "" would listen at a port that no machine finds
		return nil
	}
	host, err := o.serverHost()
	if err != nil {
		return err
	}
	// The connections of machines are bounded by the server, so that these requests need no pace, and take none from the reconcilers.
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS = -1
	live, err := client.New(config, client.Options{Scheme: mgr.GetScheme()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	cached, err := client.New(config, client.Options{Scheme: mgr.GetScheme(), Cache: &client.CacheOptions{Reader: mgr.GetCache()}})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	certificates, err := o.certificates(ctx, live, host)
	if err != nil {
		return err
	}
	log := ctrl.LoggerFrom(ctx).WithName("serve")
	server, err := serve.New(serve.Options{
		Address: o.serverAddress, Certificates: certificates, Releases: o.serverReleases, Registry: metrics.Registry,
		Backend: &reconcilers.Served{Reconciler: r, Client: cached, Live: live, Log: log},
		Log:     log,
	})
	if err != nil {
		return err //nolint:wrapcheck // it says what
	}
	if err := mgr.Add(server); err != nil {
		return fmt.Errorf("add the endpoint for machines: %w", err)
	}
	if err := mgr.AddReadyzCheck("serve", server.Ready); err != nil {
		return fmt.Errorf("add a probe: %w", err)
	}
	r.Endpoint = func() store.Endpoint { return store.Endpoint{URL: o.serverURL, Trust: certificates.Trust()} }
	return nil
}

// serverHost is the host of --server-url.
func (o *options) serverHost() (string, error) {
	u, err := url.Parse(o.serverURL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" ||
		strings.ToLower(o.serverURL) != o.serverURL {
		return "", fmt.Errorf("--server-url %q must be https://HOST[:PORT] in lower case, by which machines reach --server-address", o.serverURL)
	}
	if strings.HasSuffix(u.Hostname(), ".invalid") { // the default of the manifests
		return "", errors.New("--server-url is not set: give https://HOST[:PORT] by which machines reach --server-address, with clusterctl in MACHINEADM_SERVER_URL")
	}
	return u.Hostname(), nil
}

// certificates come from the Secret that --server-certificate names. Without the flag, the manager signs them.
func (o *options) certificates(ctx context.Context, live client.Client, host string) (*serve.Certificates, error) {
	namespace := o.leaseNamespace
	if namespace == "" {
		text, err := os.ReadFile(namespaceFile)
		if err != nil {
			return nil, fmt.Errorf("find the namespace of the manager, for the certificate of --server-url: %w; give it by --leader-elect-namespace", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	log := ctrl.LoggerFrom(ctx).WithName("serve")
	if o.serverCertificate == "" {
		certificate, key, err := authority(ctx, live, namespace)
		if err != nil {
			return nil, err
		}
		found, err := serve.FromAuthority(certificate, key, host, log, time.Now)
		return found, inSecret(err, namespace, authorityName)
	}
	read := func(ctx context.Context) (map[string][]byte, error) {
		var secret corev1.Secret
		err := live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.serverCertificate}, &secret)
		return secret.Data, err //nolint:wrapcheck // inSecret says what it is for
	}
	found, err := serve.FromSecret(ctx, read, host, log, time.Now)
	return found, inSecret(err, namespace, o.serverCertificate)
}

func inSecret(err error, namespace, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("use Secret %s/%s for the certificate of --server-url: %w", namespace, name, err)
}

// authority is the authority of the endpoint. The first replica makes it.
func authority(ctx context.Context, live client.Client, namespace string) (certificate, key []byte, err error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: authorityName}}
	err = live.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if apierrors.IsNotFound(err) {
		if certificate, key, err = serve.NewAuthority(time.Now()); err != nil {
			return nil, nil, err //nolint:wrapcheck // it says what
		}
		secret.Type, secret.Immutable = authorityType, ptr.To(true)
		secret.Data = map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key}
		if err = live.Create(ctx, secret); apierrors.IsAlreadyExists(err) {
			err = live.Get(ctx, client.ObjectKeyFromObject(secret), secret) // another replica was faster
		}
	}
	if err != nil {
		return nil, nil, inSecret(err, namespace, authorityName)
	}
	if secret.Type != authorityType {
		return nil, nil, inSecret(fmt.Errorf("it is not of type %s: delete it", authorityType), namespace, authorityName)
	}
	return secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey], nil
}
