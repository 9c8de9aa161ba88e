package settings

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestOverridden: the last flag of a name, and a file of the configuration directory, precede what the document says of the kubelet.
func TestOverridden(t *testing.T) {
	t.Parallel()
	s, violations, err := spec(t, initSpec+`node:
  name: a
  ip: 192.0.2.1
  labels: {b: "2", a: "1"}
  kubeletArgs: [{name: v, value: "2"}]
kubelet:
  maxPods: 50
  evictionHard: {memory.available: 5%, nodefs.available: 10%}
  config: {podsPerCore: 5, serializeImagePulls: false, clusterDNS: [10.96.0.10]}
`)
	require.NoError(t, err)
	require.Empty(t, violations)
	for command, want := range map[string]string{
		"--max-pods=50 --node-ip 192.0.2.1 --v=2 --hostname-override=a": "",
		"--max-pods=110":                                           "spec.kubelet",
		"--max-pods=110 --max-pods=50":                             "",
		"--node-ip=198.51.100.1":                                   "spec.node.ip",
		"--node-labels=b=2,a=1":                                    "",
		"--node-labels=a=1":                                        "spec.node.labels",
		"--v=4 --hostname-override=b":                              "spec.node.name spec.node.kubeletArgs[0]",
		"--serialize-image-pulls":                                  "spec.kubelet",
		"--eviction-hard=nodefs.available<10%,memory.available<5%": "",
		"--eviction-hard=memory.available<1%":                      "spec.kubelet",
		"/usr/bin/kubelet --root-dir /srv":                         "",
	} {
		var fields []string
		for _, v := range s.Overridden(strings.Fields(command), "a file") {
			fields = append(fields, v.Field)
			assert.True(t, strings.HasPrefix(v.Message, "a file gives the kubelet "), v.Message)
		}
		assert.Equal(t, want, strings.Join(fields, " "), command)
	}
	assert.Equal(t, "/etc/kubelet.d", ConfigDirectory([]string{"--v=2", "--config-dir", "/etc/kubelet.d"}))
	by := s.OverriddenBy(objectOf([]byte(`{"kind":"KubeletConfiguration","maxPods":50,"podsPerCore":6,"evictionHard":{"nodefs.available":"10%","memory.available":"5%"}}`)), "/etc/kubelet.d/10.conf")
	require.Len(t, by, 1)
	assert.Equal(t, "/etc/kubelet.d/10.conf gives the kubelet podsPerCore with another value than the document, and that is in force", by[0].Message)
}
