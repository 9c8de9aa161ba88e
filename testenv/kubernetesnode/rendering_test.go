// Package kubernetesnode tests the plugin of KubernetesNode with real kubeadm.
package kubernetesnode

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/cluster"
)

const (
	golden  = "../../plugins/kubernetes-node/kubeadm/internal/render/testdata/golden"
	workDir = "/run/machineadm-kubernetes-node" // of the golden files
)

// configuration returns a golden file for a directory of the test in place of the work directory.
func configuration(t testing.TB, file, directory string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), workDir, directory)
}

// TestKubeadmAcceptsTheGoldenFiles: kubeadm validates what is rendered for it, and no field is unknown to it.
func TestKubeadmAcceptsTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := cluster.Kubeadm(t, v)
			directory := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(directory, "discovery.conf"), []byte("kind: Config\n"), 0o600))
			files, err := filepath.Glob(filepath.Join(golden, v.Patch(), "*.yaml"))
			require.NoError(t, err)
			require.NotEmpty(t, files)
			if v == cluster.V136 { // the oldest that reads v1beta4; 1.31 is not built
				more, err := filepath.Glob(filepath.Join(golden, "v1.31.0", "*.yaml"))
				require.NoError(t, err)
				files = append(files, more...)
			}
			for _, file := range files {
				if strings.HasSuffix(file, "/windows.yaml") {
					continue // kubeadm of Linux takes the pipe for a path
				}
				validate := exec.CommandContext(t.Context(), kubeadm, "config", "validate", "--config=/dev/stdin")
				validate.Stdin = strings.NewReader(strings.ReplaceAll(configuration(t, file, directory), "v1.31.0", v.Patch()))
				out, err := validate.CombinedOutput()
				require.NoError(t, err, "%s: %s", file, out)
				for _, complaint := range []string{"unknown field", "strict decoding", "deprecated", "error"} {
					assert.NotContains(t, strings.ToLower(string(out)), complaint, file)
				}
			}
		})
	}
}

// TestKubeadmPullsTheImages: the images that a document names are what kubeadm pulls, the DNS server's too.
func TestKubeadmPullsTheImages(t *testing.T) {
	t.Parallel()
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			list := exec.CommandContext(t.Context(), cluster.Kubeadm(t, v), "config", "images", "list", "--config=/dev/stdin")
			list.Stdin = strings.NewReader(configuration(t, filepath.Join(golden, v.Patch(), "init.yaml"), t.TempDir()))
			out, err := list.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "registry.example.com/coredns/coredns:v1.12.1\n")
			assert.Contains(t, string(out), "registry.example.com/kubernetes/kube-apiserver:"+v.Patch()+"\n")
			assert.NotRegexp(t, `(?m)^registry\.[^e]`, string(out))
		})
	}
}

// TestKubeadmAppliesThePatches: the kubelet of a worker with profiles has no static pods, although kubeadm sets their directory
// on every node.
func TestKubeadmAppliesThePatches(t *testing.T) {
	t.Parallel()
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := cluster.Kubeadm(t, v)
			minimal, err := os.ReadFile(filepath.Join(golden, v.Patch(), "minimal.yaml"))
			require.NoError(t, err)
			kubelet := kubeletConfiguration(t, kubeadm, string(minimal))
			assert.Contains(t, kubelet, "staticPodPath: /etc/kubernetes/manifests\n")

			patches := t.TempDir()
			text, err := os.ReadFile(filepath.Join(golden, v.Patch(), "worker.patches"))
			require.NoError(t, err)
			all := regexp.MustCompile(`(?m)^(\S+\.json)\n(.*)$`).FindAllStringSubmatch(string(text), -1)
			require.Len(t, all, 2)
			for _, patch := range all {
				require.NoError(t, os.WriteFile(filepath.Join(patches, patch[1]), []byte(patch[2]), 0o600))
			}
			first, rest, ok := strings.Cut(string(minimal), "---\n")
			require.True(t, ok)
			kubelet = kubeletConfiguration(t, kubeadm, first+"patches: {directory: "+patches+"}\n---\n"+rest)
			assert.NotContains(t, kubelet, "staticPodPath")
			for _, line := range []string{"seccompDefault: true", "registerNode: false", "podsPerCore: 5", "maxPods: 20", "protectKernelDefaults: true"} {
				assert.Contains(t, kubelet, line+"\n")
			}
		})
	}
}

// kubeletConfiguration returns the configuration that kubeadm would write.
func kubeletConfiguration(t testing.TB, kubeadm, configuration string) string {
	t.Helper()
	directory, config := t.TempDir(), filepath.Join(t.TempDir(), "config.yaml")
	configuration = strings.ReplaceAll(configuration, "nodeRegistration:\n", "nodeRegistration:\n  criSocket: unix:///run/absent.sock\n")
	require.NoError(t, os.WriteFile(config, []byte(configuration), 0o600))
	start := exec.CommandContext(t.Context(), kubeadm, "init", "phase", "kubelet-start", "--dry-run", "--config="+config)
	start.Env = append(os.Environ(), "KUBEADM_INIT_DRYRUN_DIR="+directory)
	out, err := start.CombinedOutput()
	require.NoError(t, err, "%s", out)
	var result string
	require.NoError(t, filepath.WalkDir(directory, func(path string, _ fs.DirEntry, err error) error {
		if err == nil && filepath.Base(path) == "config.yaml" {
			text, err := os.ReadFile(path)
			result = string(text)
			return err
		}
		return err
	}))
	return result
}

// TestKubeadmNetworks: the table of networks is true of every release.
func TestKubeadmNetworks(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/testdata/networks.txt")
	require.NoError(t, err)
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := cluster.Kubeadm(t, v)
			for line := range strings.Lines(string(table)) {
				if strings.HasPrefix(line, "#") {
					continue
				}
				f := strings.Fields(strings.ReplaceAll(line, " -", ` ""`))
				name, value, _ := strings.Cut(f[3], "=")
				api, args := "v1beta4", "[{name: "+name+", value: '"+value+"'}]"
				if v == cluster.V130 {
					api, args = "v1beta3", "{"+name+": '"+value+"'}"
				}
				if value == "" {
					args = "null"
				}
				validate := exec.CommandContext(t.Context(), kubeadm, "config", "validate", "--config=/dev/stdin")
				validate.Stdin = strings.NewReader("apiVersion: kubeadm.k8s.io/" + api + "\nkind: ClusterConfiguration\nkubernetesVersion: " + v.Patch() +
					"\nnetworking:\n  podSubnet: " + f[1] + "\n  serviceSubnet: " + f[2] + "\ncontrollerManager: {extraArgs: " + args + "}\n")
				out, err := validate.CombinedOutput()
				assert.Equal(t, f[0] == "yes", err == nil, "%s%s", line, out)
			}
		})
	}
}
