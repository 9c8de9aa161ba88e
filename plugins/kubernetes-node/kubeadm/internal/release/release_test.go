package release_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]release.Version{
		"v1.37.1":               {Major: 1, Minor: 37, Patch: 1},
		"v1.30.14-eks-ae9a62a":  {Major: 1, Minor: 30, Patch: 14, Suffix: "-eks-ae9a62a"},
		"v1.36.0+k3s1":          {Major: 1, Minor: 36, Suffix: "+k3s1"},
		"v1.37.0-rc.1":          {Major: 1, Minor: 37, Suffix: "-rc.1"},
		"":                      {},
		"1.37.1":                {},
		"v1.37":                 {},
		"v1.037.1":              {},
		"v1.37.1 ":              {},
		"v1.37.1\n":             {},
		"v99999.1.1":            {},
		"stable-1":              {},
		"Kubernetes v1.37.1":    {},
		"v1.37.1-c4n4ry secret": {},
	} {
		got, err := release.Parse(text)
		assert.Equal(t, want, got, text)
		if want == (release.Version{}) {
			require.Error(t, err, text)
			assert.NotContains(t, err.Error(), "c4n4ry")
			continue
		}
		require.NoError(t, err, text)
		assert.Equal(t, text, got.String())
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	for versions, want := range map[string]string{
		"v1.37.1 v1.37.0 v1.37.9": "",
		"v1.36.3 v1.37.1 v1.36.0": "",
		"v1.37.1 v1.37.1 v1.34.0": "",
		"v1.30.1 v1.31.0 v1.28.0": "",
		"v1.35.0 v1.37.1 v1.35.0": "the installed kubeadm is v1.37.1, which serves 1.37 and 1.36",
		"v1.37.0 v1.36.3 v1.36.3": "the installed kubeadm is v1.36.3, which serves 1.36 and 1.35",
		"v1.36.3 v1.37.1 v1.37.1": "the installed kubelet is v1.37.1, which is newer than the control plane",
		"v1.37.1 v1.37.1 v1.33.9": "the installed kubelet is v1.33.9, which is more than three minor versions older than kubeadm",
		"v1.29.0 v1.29.0 v1.29.0": "the installed kubeadm is v1.29.0, and this plugin supports 1.30 to 1.37",
		"v2.0.0 v1.37.1 v1.37.1":  "the installed kubeadm is v1.37.1, which serves 1.37 and 1.36; the installed kubelet is v1.37.1, which is newer than the control plane",
	} {
		var all []release.Version
		for _, text := range strings.Fields(versions) {
			v, err := release.Parse(text)
			require.NoError(t, err)
			all = append(all, v)
		}
		var got []string
		for _, v := range release.Check(all[0], all[1], all[2]) {
			assert.Equal(t, "spec.kubernetesVersion", v.Field)
			assert.NotEmpty(t, v.Hint)
			got = append(got, v.Message)
		}
		assert.Equal(t, want, strings.Join(got, "; "), versions)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"v1.37.1", "v1.30.14-eks-1", "v1.2.3+a.b", "v0.0.0", "1", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if v, err := release.Parse(text); err == nil {
			assert.Equal(t, text, v.String())
		}
	})
}

// TestPrograms: each minor version of kubeadm requires its own programs.
func TestPrograms(t *testing.T) {
	t.Parallel()
	for minors, want := range map[[2]int]string{
		{30, 30}: "crictl conntrack ip iptables mount nsenter", {30, 0}: "crictl conntrack ip iptables mount nsenter",
		{31, 31}: "conntrack ip iptables mount nsenter", {32, 31}: "conntrack ip iptables mount nsenter",
		{32, 32}: "ip iptables mount nsenter", {32, 0}: "ip iptables mount nsenter",
		{33, 33}: "cp losetup mount", {37, 0}: "cp losetup mount",
	} {
		got := release.Version{Major: 1, Minor: minors[0]}.Programs(release.Version{Major: 1, Minor: minors[1]})
		assert.Equal(t, want, strings.Join(got, " "), minors)
	}
}
