package cluster

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const initConfiguration = `apiVersion: kubeadm.k8s.io/VERSION
kind: InitConfiguration
nodeRegistration: {name: node1}
`

func TestKubeadmReadsItsVersions(t *testing.T) {
	t.Parallel()
	for v, reads := range map[Version]map[string]bool{
		V130: {"v1beta3": true, "v1beta4": false},
		V136: {"v1beta3": true, "v1beta4": true},
		V137: {"v1beta3": false, "v1beta4": true},
	} {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := Kubeadm(t, v)
			version, err := exec.CommandContext(t.Context(), kubeadm, "version", "--output=short").Output()
			require.NoError(t, err)
			assert.Equal(t, v.Patch(), strings.TrimSpace(string(version)))
			for api, want := range reads {
				validate := exec.CommandContext(t.Context(), kubeadm, "config", "validate", "--config=/dev/stdin")
				validate.Stdin = strings.NewReader(strings.ReplaceAll(initConfiguration, "VERSION", api))
				out, err := validate.CombinedOutput()
				assert.Equal(t, want, err == nil, "%s: %s", api, out)
			}
		})
	}
}

func TestConfigurationIsValid(t *testing.T) {
	t.Parallel()
	validate := exec.CommandContext(t.Context(), Kubeadm(t, V136), "config", "validate", "--config=/dev/stdin")
	validate.Stdin = strings.NewReader(Configuration("control", "10.77.0.1"))
	out, err := validate.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

func TestReference(t *testing.T) {
	t.Parallel()
	for _, v := range []Version{V136, V137} {
		list, err := exec.CommandContext(t.Context(), Kubeadm(t, v), "config", "images", "list", "--image-repository="+ImageRepository, "--kubernetes-version="+v.Patch()).Output()
		require.NoError(t, err)
		for _, program := range controlPlaneImages() {
			assert.Contains(t, string(list), v.reference(program)+"\n")
		}
	}
}
