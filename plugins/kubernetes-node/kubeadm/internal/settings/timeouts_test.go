package settings

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestTimeouts: the waits of kubeadm end before the time limit of the document, and the document's stay.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	all := func(each string) v1alpha1.NodeTimeouts {
		return v1alpha1.NodeTimeouts{ControlPlane: each, Kubelet: each, KubernetesAPI: each, TLSBootstrap: each, Discovery: each}
	}
	request := v1alpha1.NodeTimeouts{KubernetesAPI: "4m0s"}
	for limit, want := range map[string]v1alpha1.NodeTimeouts{
		"": request, "12m": request, "1h": request, "9m": all("3m0s"), "2m": all("40s"), "-1m": {}, "0s": {}, "soon": {},
	} {
		require.Equal(t, want, timeouts(nil, v1alpha1.Metadata{Timeout: limit}.Limit()), limit)
	}
	own := v1alpha1.NodeTimeouts{KubernetesAPI: "1s", Kubelet: "9s", EtcdAPI: "2s"}
	want := all("40s")
	want.KubernetesAPI, want.Kubelet, want.EtcdAPI = "1s", "9s", "2s"
	require.Equal(t, want, timeouts(&own, 2*time.Minute))
	require.Equal(t, own, timeouts(&own, time.Hour))
}
