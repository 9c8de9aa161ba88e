// Package kubeconfig keeps the manager from connecting with anything but what the kubeconfig of a cluster itself has. The
// author of such a Secret would otherwise decide which file or program of the manager authenticates to a server of their choice.
package kubeconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Reader reads Secrets with kubeconfigs, for the connections to clusters, and nothing else.
type Reader struct{ client.Reader }

// Get reads a Secret and replaces its data by the kubeconfig that Contained makes. It fails where Contained does.
func (r Reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	if err := r.Reader.Get(ctx, key, into, options...); err != nil {
		return err //nolint:wrapcheck // its kind matters
	}
	found, ok := into.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("%T is no Secret", into)
	}
	text, err := Contained(found.Data[secret.KubeconfigDataName])
	if err != nil {
		return fmt.Errorf("Secret %s: kubeconfig: %w", key, err) //nolint:staticcheck // a kind
	}
	found.Data = map[string][]byte{secret.KubeconfigDataName: text}
	return nil
}

// Contained returns the current context of a kubeconfig, written anew so that no two parsers can read it differently. It refuses what
// names a file or a program, impersonates, or is sent without TLS to a verified server. Its errors name fields and have no value.
func Contained(text []byte) ([]byte, error) {
	all, err := clientcmd.Load(text)
	if err != nil {
		return nil, errors.New("it cannot be read")
	}
	current := all.Contexts[all.CurrentContext]
	if current == nil {
		return nil, errors.New("current-context names no context")
	}
	cluster, user := all.Clusters[current.Cluster], all.AuthInfos[current.AuthInfo]
	if cluster == nil || user == nil {
		return nil, errors.New("the current context names no cluster or no user")
	}
	if server, err := url.Parse(cluster.Server); err != nil || server.Scheme != "https" || server.User != nil {
		return nil, errors.New("server is no https URL without a user")
	}
	if proxy, err := url.Parse(cluster.ProxyURL); err != nil || proxy.User != nil {
		return nil, errors.New("proxy-url is no URL without a user")
	}
	made := api.NewConfig()
	made.Clusters["cluster"] = &api.Cluster{
		Server: cluster.Server, TLSServerName: cluster.TLSServerName, CertificateAuthorityData: cluster.CertificateAuthorityData,
		ProxyURL: cluster.ProxyURL, DisableCompression: cluster.DisableCompression,
	}
	made.AuthInfos["user"] = &api.AuthInfo{
		ClientCertificateData: user.ClientCertificateData, ClientKeyData: user.ClientKeyData, Token: user.Token,
		Username: user.Username, Password: user.Password,
	}
	made.Contexts["context"], made.CurrentContext = &api.Context{Cluster: "cluster", AuthInfo: "user"}, "context"
	// A field that a later release of Kubernetes adds differs, too.
	cluster.LocationOfOrigin, cluster.Extensions, user.LocationOfOrigin, user.Extensions = "", nil, "", nil
	if !equality.Semantic.DeepEqual(made.Clusters["cluster"], cluster) || !equality.Semantic.DeepEqual(made.AuthInfos["user"], user) {
		return nil, fmt.Errorf("only server, tls-server-name, certificate-authority-data, proxy-url, disable-compression, "+
			"client-certificate-data, client-key-data, token, username and password are supported; remove %s", others(cluster, user))
	}
	return clientcmd.Write(*made)
}

// others names the fields that are not supported, as far as they are known.
func others(cluster *api.Cluster, user *api.AuthInfo) string {
	fields := map[string]bool{
		"insecure-skip-tls-verify": cluster.InsecureSkipTLSVerify, "certificate-authority": cluster.CertificateAuthority != "",
		"client-certificate": user.ClientCertificate != "", "client-key": user.ClientKey != "", "tokenFile": user.TokenFile != "",
		"as": user.Impersonate != "", "as-uid": user.ImpersonateUID != "", "as-groups": len(user.ImpersonateGroups) > 0,
		"as-user-extra": len(user.ImpersonateUserExtra) > 0, "auth-provider": user.AuthProvider != nil, "exec": user.Exec != nil,
	}
	maps.DeleteFunc(fields, func(_ string, set bool) bool { return !set })
	if len(fields) == 0 {
		return "the others"
	}
	return strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
}
