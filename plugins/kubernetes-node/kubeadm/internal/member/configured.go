package member

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
)

// Configured asks the API server at HOST:PORT for what kubeadm keeps in the cluster for all nodes, with the rights of a bootstrap token;
// nil without an answer. The token is sent to a server of the authority that one of the hashes pins, as by kubeadm.
func Configured(ctx context.Context, endpoint string, token []byte, hashes []string) *settings.Cluster {
	var info, kubeadm, kubelet struct {
		Data map[string]string `json:"data"`
	}
	if !get(ctx, endpoint, "/api/v1/namespaces/kube-public/configmaps/cluster-info", anyServer(), nil, &info) {
		return nil
	}
	authority := parseKubeconfig([]byte(info.Data["kubeconfig"])).Authority
	hash := CertificateHash(authority)
	if !slices.ContainsFunc(hashes, func(h string) bool { return hash != "" && strings.EqualFold(h, hash) }) {
		return nil
	}
	config := &tls.Config{RootCAs: x509.NewCertPool(), MinVersion: tls.VersionTLS12}
	config.RootCAs.AddCert(firstCertificate(authority)) // the others are not pinned
	const system = "/api/v1/namespaces/kube-system/configmaps/"
	if !get(ctx, endpoint, system+"kubeadm-config", config, token, &kubeadm) || !get(ctx, endpoint, system+"kubelet-config", config, token, &kubelet) {
		return nil
	}
	var c struct {
		CertificatesDir string `json:"certificatesDir"`
		Networking      struct {
			Pods     string `json:"podSubnet"`
			Services string `json:"serviceSubnet"`
		} `json:"networking"`
	}
	var k struct {
		FailSwapOn *bool `json:"failSwapOn"`
	}
	if !decode(kubeadm.Data["ClusterConfiguration"], &c) || !decode(kubelet.Data["kubelet"], &k) {
		return nil
	}
	return &settings.Cluster{
		Subnets:    strings.Split(c.Networking.Pods+","+c.Networking.Services, ","),
		FailSwapOn: k.FailSwapOn == nil || *k.FailSwapOn, CertificatesDir: cmp.Or(c.CertificatesDir, settings.DefaultCertificatesDir),
	}
}

func decode(text string, into any) bool {
	data, err := document.JSON("", []byte(text))
	return err == nil && json.Unmarshal(data, into) == nil
}
