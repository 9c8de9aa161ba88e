package kubernetesnode

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/testenv/cluster"
)

// TestKubeadmRules: the table of rules is true of every release.
func TestKubeadmRules(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/testdata/kubeadm.txt")
	require.NoError(t, err)
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := cluster.Kubeadm(t, v)
			for line := range strings.Lines(string(table)) {
				cells := strings.Split(strings.TrimSpace(line), " | ")
				if strings.HasPrefix(line, "#") {
					continue
				}
				result, since, _ := strings.Cut(cells[0], "@")
				fields, _, _ := strings.Cut(cells[3], " # ")
				kind, fields, _ := strings.Cut(fields, " ")
				if since != "" && string(v) < "1."+since {
					continue
				}
				validate := exec.CommandContext(t.Context(), kubeadm, "config", "validate", "--config=/dev/stdin")
				validate.Stdin = strings.NewReader(ruleDocuments(t, v, kind, fields))
				out, err := validate.CombinedOutput()
				assert.Equal(t, result != "no", err == nil, "%s%s", line, out)
			}
		})
	}
}

// ruleDocuments is a configuration that kubeadm accepts, but for fields of one kind.
func ruleDocuments(t *testing.T, v cluster.Version, kind, fields string) string {
	t.Helper()
	version := "kubeadm.k8s.io/v1beta4"
	if v == cluster.V130 {
		version = "kubeadm.k8s.io/v1beta3"
	}
	all := map[string]map[string]any{
		"Init":    {"nodeRegistration": map[string]any{"name": "a", "criSocket": "unix:///a.sock"}, "localAPIEndpoint": map[string]any{"advertiseAddress": "192.0.2.1"}},
		"Cluster": {"kubernetesVersion": v.Patch()},
	}
	if kind == "Join" {
		hash := "sha256:" + strings.Repeat("0", 64)
		all = map[string]map[string]any{"Join": {
			"nodeRegistration": map[string]any{"name": "a", "criSocket": "unix:///a.sock"},
			"discovery": map[string]any{"bootstrapToken": map[string]any{
				"token": "abcdef.0123456789abcdef", "apiServerEndpoint": "a:1", "caCertHashes": []string{hash},
			}},
		}}
	}
	if all[kind] == nil {
		all[kind] = map[string]any{}
	}
	data, err := document.JSON("", []byte(fields))
	require.NoError(t, err, fields)
	var given map[string]any
	require.NoError(t, json.Unmarshal(data, &given))
	for name, value := range given {
		more, isObject := value.(map[string]any)
		if base, ok := all[kind][name].(map[string]any); ok && isObject && name != "discovery" {
			maps.Copy(base, more)
			continue
		}
		all[kind][name] = value
	}
	var documents bytes.Buffer
	for name, object := range all {
		object["kind"], object["apiVersion"] = name+"Configuration", version
		switch name {
		case "Kubelet":
			object["apiVersion"] = "kubelet.config.k8s.io/v1beta1"
		case "KubeProxy":
			object["apiVersion"] = "kubeproxy.config.k8s.io/v1alpha1"
		}
		if v == cluster.V130 {
			argumentsByName(object)
		}
		text, err := json.Marshal(object)
		require.NoError(t, err)
		documents.WriteString("---\n" + string(text) + "\n")
	}
	return documents.String()
}

// argumentsByName turns lists of arguments into the mappings of v1beta3.
func argumentsByName(object map[string]any) {
	for name, value := range object {
		if inner, ok := value.(map[string]any); ok {
			argumentsByName(inner)
		}
		list, ok := value.([]any)
		if !ok || !strings.HasSuffix(strings.ToLower(name), "extraargs") {
			continue
		}
		byName := map[string]any{}
		for _, item := range list {
			if argument, ok := item.(map[string]any); ok {
				byName[fmt.Sprint(argument["name"])] = argument["value"]
			}
		}
		object[name] = byName
	}
}

// TestKubeadmPhases: kubeadm has no phase that the plugin refuses.
func TestKubeadmPhases(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../plugins/kubernetes-node/kubeadm/internal/settings/cluster.go")
	require.NoError(t, err)
	for _, v := range cluster.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			kubeadm := cluster.Kubeadm(t, v)
			for _, command := range []string{"init", "join"} {
				out, err := exec.CommandContext(t.Context(), kubeadm, command, "--help").Output()
				require.NoError(t, err)
				parts := strings.Split(string(out), "```\n")
				require.Len(t, parts, 3)
				for line := range strings.Lines(parts[1]) {
					name := strings.TrimPrefix(strings.Fields(line)[0], "/")
					assert.Regexp(t, `[, :"]`+name+`[, :"]`, string(source))
				}
			}
		})
	}
}
