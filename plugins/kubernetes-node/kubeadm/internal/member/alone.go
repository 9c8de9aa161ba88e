package member

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/machineadm/machineadm/internal/httpclient"
	"github.com/machineadm/machineadm/sdk"
)

// apiTimeout bounds one question to the API server or to etcd of this machine.
const apiTimeout = 5 * time.Second

// Alone proves that a cluster whose creation was interrupted has no other node, so that nothing is lost with it: no API server
// was started; or etcd has no data yet; or the API server lists no other node, and etcd no other member. EtcdDir is empty for
// an external etcd, whose data kubeadm reset does not remove.
func Alone(ctx context.Context, m sdk.Machine, node, etcdDir, certificatesDir string) error {
	const hint = "kubeadm reset here, if no other machine has joined; then run again"
	if _, err := m.FS.Stat(kubernetesDir + "/manifests/kube-apiserver.yaml"); absent(err) {
		return nil
	}
	if etcdDir == "" {
		return sdk.Final(sdk.Precondition("an earlier run was interrupted, and the external etcd can have data of it",
			"empty it; "+hint))
	}
	if _, err := m.FS.Stat(path.Join(etcdDir, "member")); absent(err) {
		return nil
	}
	others, err := nodes(ctx, m, node)
	if err == nil && others == 0 {
		others, err = members(ctx, m, certificatesDir)
	}
	switch {
	case err != nil:
		message := "an earlier run was interrupted, and it is unknown whether other nodes have joined the cluster since: "
		return sdk.Needs(sdk.Precondition(message+err.Error(), "wait for the API server of this machine and run again; or "+hint), "unit:")
	case others > 0:
		return sdk.Final(sdk.Precondition("an earlier run was interrupted, and other nodes have joined the cluster since",
			"complete the cluster with kubeadm init phase, or give it up: "+hint))
	}
	return nil
}

// nodes counts the nodes other than this one.
func nodes(ctx context.Context, m sdk.Machine, node string) (int, error) {
	// The group of admin.conf has no rights until kubeadm has stored them in the cluster; super-admin.conf needs none.
	admin, err := m.FS.ReadFile(kubernetesDir + "/super-admin.conf")
	if absent(err) {
		admin, err = m.FS.ReadFile(kubernetesDir + "/admin.conf")
	}
	if err != nil {
		return 0, errors.New("the credentials of the administrator are missing")
	}
	conf := parseKubeconfig(admin)
	server := conf.Server
	// That of the controller manager is the one of this machine.
	if local, err := m.FS.ReadFile(kubernetesDir + "/controller-manager.conf"); err == nil {
		server = parseKubeconfig(local).Server
	}
	if err := conf.load(m); err != nil {
		return 0, errors.New("the credentials of the administrator cannot be read")
	}
	pems := [3][]byte{conf.Authority, conf.Certificate, conf.Key}
	var list struct {
		Items []struct {
			Metadata struct {
				Name string `json:"name"`
			} `json:"metadata"`
		} `json:"items"`
	}
	if err := ask(ctx, http.MethodGet, server+"/api/v1/nodes", "kubernetes", pems, &list); err != nil {
		return 0, fmt.Errorf("the API server does not answer: %w", err)
	}
	count := 0
	for _, item := range list.Items {
		if item.Metadata.Name != node {
			count++
		}
	}
	return count, nil
}

// members counts the members of the etcd of this machine beside itself. A control plane is one before it is a node.
func members(ctx context.Context, m sdk.Machine, certificatesDir string) (int, error) {
	manifest, err := m.FS.ReadFile(kubernetesDir + "/manifests/etcd.yaml")
	address := regexp.MustCompile(`--listen-client-urls=(https://[^,\s]+)`).FindSubmatch(manifest)
	if err != nil || address == nil {
		return 0, errors.New("the manifest of etcd is missing")
	}
	var pems [3][]byte
	for i, name := range []string{"etcd/ca.crt", "apiserver-etcd-client.crt", "apiserver-etcd-client.key"} {
		if pems[i], err = m.FS.ReadFile(path.Join(certificatesDir, name)); err != nil {
			return 0, errors.New("the certificates of etcd are missing")
		}
	}
	var list struct {
		Members []struct{} `json:"members"`
	}
	if err := ask(ctx, http.MethodPost, string(address[1])+"/v3/cluster/member/list", "localhost", pems, &list); err != nil {
		return 0, fmt.Errorf("etcd does not answer: %w", err)
	}
	return len(list.Members) - 1, nil
}

// ask sends a request with a client certificate and decodes the answer. Pems are the authority, certificate and key.
func ask(ctx context.Context, method, url, serverName string, pems [3][]byte, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	pair, err := tls.X509KeyPair(pems[1], pems[2])
	roots := x509.NewCertPool()
	if err != nil || !roots.AppendCertsFromPEM(pems[0]) {
		return errors.New("the certificates to ask it with are incomplete")
	}
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader([]byte("{}")))
	if err != nil {
		return err
	}
	client := httpclient.New(httpclient.Options{TLS: &tls.Config{
		RootCAs: roots, Certificates: []tls.Certificate{pair}, ServerName: serverName, MinVersion: tls.VersionTLS12,
	}})
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // only read from
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", strings.TrimSpace(response.Status))
	}
	return json.NewDecoder(io.LimitReader(response.Body, 64<<20)).Decode(answer)
}
