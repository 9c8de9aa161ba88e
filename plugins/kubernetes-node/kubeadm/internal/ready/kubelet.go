package ready

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/httpclient"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// kubeletTimeout is the time that kubeadm waits for the kubelet if the document has none.
const kubeletTimeout = 4 * time.Minute

// Kubelet waits, as kubeadm does after it has started it, until the kubelet says at the address in its configuration that it is healthy.
func Kubelet(ctx context.Context, p sdk.Progress, m sdk.Machine, s settings.Settings) error {
	address, err := healthAddress(m, s.Windows)
	if err != nil {
		return err
	}
	timeout, err := time.ParseDuration(s.Timeouts.Kubelet)
	if err != nil { // none
		timeout = kubeletTimeout
	}
	client := httpclient.New(httpclient.Options{})
	defer client.CloseIdleConnections()
	return sdk.Wait(ctx, p, sdk.WaitSpec{
		What: "the kubelet does not become healthy", Timeout: timeout,
		Probe: func(ctx context.Context) (string, error) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/healthz", nil)
			if err != nil {
				return "", errors.New("its configuration has no address of which it can be asked")
			}
			response, err := client.Do(request)
			if err != nil {
				return "", unhealthy("it gives no answer")
			}
			defer func() { _ = response.Body.Close() }() // only its status counts
			if response.StatusCode != http.StatusOK {
				return "", unhealthy("it answers with the status " + strconv.Itoa(response.StatusCode))
			}
			return "", nil
		},
	})
}

func unhealthy(message string) error {
	return sdk.Precondition(message, "see the log of the kubelet in details.json, or journalctl -u kubelet; correct the document, then run again")
}

// healthAddress returns the HOST:PORT at which the kubelet says whether it is healthy. Source: KubeletConfiguration, kubelet.config.k8s.io/v1beta1.
func healthAddress(m sdk.Machine, windows bool) (string, error) {
	file := "/var/lib/kubelet/config.yaml"
	if windows {
		file = `C:\var\lib\kubelet\config.yaml`
	}
	var c struct {
		Address string `json:"healthzBindAddress"`
		Port    *int   `json:"healthzPort"`
	}
	text, err := m.FS.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if data, err := document.JSON("", text); err == nil {
		_ = json.Unmarshal(data, &c) // what the kubelet cannot read either has the defaults
	}
	port := 10248
	if c.Port != nil {
		port = *c.Port
	}
	if ip, err := netip.ParseAddr(c.Address); err == nil && ip.IsUnspecified() {
		c.Address = "" // it listens on all addresses
	}
	return net.JoinHostPort(cmp.Or(c.Address, "127.0.0.1"), strconv.Itoa(port)), nil
}
