package render_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings/settingstest"
)

// TestComingFromKubeadmConfig: a document has in kubeadm's configuration what the KubeadmConfig of its row has. testenv/reference shows the
// same of the KubeadmConfig.
func TestComingFromKubeadmConfig(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/kubeadmconfig.txt")
	require.NoError(t, err)
	const discovery = "discovery: {token: {value: abcdef.0123456789abcdef}, endpoint: 'a:1', caCertHashes: ['sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef']}\n"
	for line := range strings.Lines(string(table)) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if strings.HasPrefix(line, "#") || cells[1] == "-" {
			continue
		}
		role, fields, _ := strings.Cut(cells[2], " ")
		text := map[string]string{"init": "role: controlPlaneInit\n", "join": "role: controlPlaneJoin\n", "worker": "role: worker\n"}[role] + "kubernetesVersion: v1.37.1\n"
		if role != "init" && !strings.HasPrefix(fields, "discovery:") {
			text += discovery
		}
		if !strings.HasPrefix(fields, "cluster:") {
			text += "cluster: {}\n"
		}
		var tree map[string]any
		require.NoError(t, json.Unmarshal(settingstest.JSON(t, "spec:\n  "+strings.ReplaceAll(text+fields, "\n", "\n  ")), &tree))
		got := map[string]any{}
		for text := range bytes.SplitSeq(rendered(t, host(t, "row"), "v1.37.1", tree).Config, []byte("---\n")) {
			object := parsed(t, string(text))
			got[strings.TrimSuffix(fmt.Sprint(object["kind"]), "Configuration")] = object
		}
		kind, want, _ := strings.Cut(cells[3], " ")
		assert.True(t, contains(got[kind], parsed(t, want)), "%s%v", line, got[kind])
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	data, err := document.JSON("", []byte(text))
	require.NoError(t, err)
	var object map[string]any
	if len(data) > 0 {
		require.NoError(t, json.Unmarshal(data, &object))
	}
	return object
}

// contains reports whether a value has all that another one has. Durations are equal in each form.
func contains(have, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, ok := have.(map[string]any)
		for name, value := range want {
			ok = ok && contains(object[name], value)
		}
		return ok
	case []any:
		list, ok := have.([]any)
		ok = ok && len(list) == len(want)
		for i := 0; ok && i < len(want); i++ {
			ok = contains(list[i], want[i])
		}
		return ok
	}
	a, errA := time.ParseDuration(fmt.Sprint(have))
	b, errB := time.ParseDuration(fmt.Sprint(want))
	return errA == nil && errB == nil && a == b || fmt.Sprint(have) == fmt.Sprint(want)
}
