package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	contract "github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// TestKubeadmRules: the plugin refuses what each rule of kubeadm does. The test of testenv/kubernetesnode compares the table with kubeadm.
func TestKubeadmRules(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/kubeadm.txt")
	require.NoError(t, err)
	rules := contract.RulesFor(v1alpha1.APIVersion, v1alpha1.KindKubernetesNode)
	const discovery = "discovery: {kubeconfig: {value: '" + kubeconfig + "'}}\n"
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		row, reason, _ := strings.Cut(strings.TrimSpace(line), " # ")
		cells := strings.Split(row, " | ")
		require.Len(t, cells, 4, line)
		role, fields, _ := strings.Cut(cells[2], " ")
		text := map[string]string{"init": initSpec, "join": joinSpec, "worker": workerSpec}[role]
		if strings.HasPrefix(fields, "discovery:") {
			text = strings.Replace(text, discovery, "", 1)
		}
		_, violations, err := spec(t, text+fields)
		require.NoError(t, err, line)
		violations = append(violations, rules.Violations(documentOf(t, text+fields))...)
		assert.Equal(t, strings.HasPrefix(cells[0], "yes"), len(violations) == 0, "%s%s", line, shown(violations))
		assert.Equal(t, cells[0] == "ours", reason != "", line)
	}
}
