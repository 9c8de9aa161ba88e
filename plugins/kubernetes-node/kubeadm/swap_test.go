//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
)

// TestSwapIsOn: swap is an error where the kubelet certainly does not start, and a warning where the cluster decides.
func TestSwapIsOn(t *testing.T) {
	t.Parallel()
	worker := newIdentity(t, "node").worker()
	patch := func(how, text string) string {
		return "patches: [{target: kubeletconfiguration, type: " + how + ", patch: '" + text + "'}]\n"
	}
	const fails, perhaps = "swap is on, and with failSwapOn: true", "only if the cluster has failSwapOn: false"
	for name, c := range map[string]struct{ spec, file, refused, warned string }{
		"init":                    {creator, "", fails, ""},
		"init, field":             {creator + "kubelet: {config: {failSwapOn: false}}", "", "", ""},
		"init, field true":        {creator + "kubelet: {config: {failSwapOn: true}}", "", fails, ""},
		"init, patch":             {creator + patch("strategic", "failSwapOn: false"), "", "", ""},
		"init, field and patch":   {creator + "kubelet: {config: {failSwapOn: false}}\n" + patch("merge", "failSwapOn: true"), "", fails, ""},
		"init, patch with null":   {creator + "kubelet: {config: {failSwapOn: false}}\n" + patch("merge", "failSwapOn: null"), "", fails, ""},
		"init, of another target": {creator + "patches: [{target: etcd, patch: 'failSwapOn: false'}]", "", fails, ""},
		"init, extra arguments":   {creator, "KUBELET_EXTRA_ARGS=\"--v=2 --fail-swap-on=false\"\n", "", ""},
		"init, comment":           {creator, "# KUBELET_EXTRA_ARGS=--fail-swap-on=false\n", fails, ""},
		"init, ignored":           {creator + "ignorePreflightErrors: [Swap]", "", "", ""},
		"worker":                  {worker, "", "", perhaps},
		"worker, field":           {worker + "kubelet: {config: {failSwapOn: false}}", "", "", ""},
		"worker, field true":      {worker + "kubelet: {config: {failSwapOn: true}}", "", fails, ""},
		"worker, json patch":      {worker + patch("json", `[{"op": "add", "path": "/failSwapOn", "value": false}]`), "", "", ""},
		"worker, argument":        {worker + "node: {kubeletArgs: [{name: fail-swap-on, value: '0'}]}", "", "", ""},
		"worker, argument true":   {worker + "node: {kubeletArgs: [{name: fail-swap-on, value: 'true'}]}\nkubelet: {config: {failSwapOn: false}}", "", fails, ""},
		"worker, other argument":  {worker + "node: {kubeletArgs: [{name: v, value: '2'}]}", "KUBELET_EXTRA_ARGS=\n", "", perhaps},
		"worker, extra arguments": {worker, "KUBELET_EXTRA_ARGS=--fail-swap-on=true --fail-swap-on=false\n", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t, &critest.Runtime{})
			f.WriteFiles(t, map[string]string{"/proc/swaps": "Filename Type Size Used Priority\n/dev/zram0 partition 1 0 100\n", "/etc/default/kubelet": c.file})
			p, err := plan(t.Context(), f.Machine, decode(t, c.spec))
			if c.refused != "" {
				e := pluginv1.AsError(err)
				require.NotNil(t, e)
				require.Equal(t, pluginv1.CodePrecondition, e.Code)
				require.Contains(t, e.Violations[0].Message, c.refused)
				return
			}
			require.NoError(t, err)
			if c.warned == "" {
				require.Empty(t, p.Warnings)
				return
			}
			require.Contains(t, p.Warnings[0].Message, c.warned)
		})
	}
}
