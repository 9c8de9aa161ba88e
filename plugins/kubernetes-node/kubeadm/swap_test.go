//go:build linux

package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	noSwap   = "Filename Type Size Used Priority\n"
	someSwap = noSwap + "/dev/zram0                              partition\t8388604\t\t0\t\t100\n/swap.img file 1024 0 -2\n"
	fstab    = "# <file system> <mount point> <type>\nUUID=1 / ext4 defaults 0 1\n/swap.img\tnone\tswap\tsw\t0\t0\n  LABEL=swap swap swap\n" +
		"#/old none swap sw 0 0\n/dev/swap /swap xfs defaults 0 0\n"
	fstabOff = "# <file system> <mount point> <type>\nUUID=1 / ext4 defaults 0 1\n# swap is off (machineadm): /swap.img\tnone\tswap\tsw\t0\t0\n" +
		"# swap is off (machineadm):   LABEL=swap swap swap\n#/old none swap sw 0 0\n/dev/swap /swap xfs defaults 0 0\n"
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
		"init, keep":              {creator + "node: {swap: keep}", "", fails, ""},
		"worker, keep":            {worker + "node: {swap: keep}", "", "", ""},
		"init, ignored":           {creator + "ignorePreflightErrors: [Swap]", "", "", fails},
		"worker, ignored":         {worker + "ignoreAllPreflightErrors: true", "", "", ""},
		"worker":                  {worker, "", "", perhaps},
		"worker, field":           {worker + "kubelet: {config: {failSwapOn: false}}", "", "", ""},
		"worker, field true":      {worker + "kubelet: {config: {failSwapOn: true}}", "", fails, ""},
		"worker, json patch":      {worker + patch("json", `[{"op": "add", "path": "/failSwapOn", "value": false}]`), "", "", ""},
		"worker, argument":        {worker + "node: {kubeletArgs: [{name: fail-swap-on, value: '0'}]}", "", "", ""},
		"worker, argument true":   {worker + "node: {kubeletArgs: [{name: fail-swap-on, value: 'true'}]}", "", fails, ""},
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

// TestSwapOff: the plan shows what turns swap off, now and at boot, before kubeadm; afterwards nothing is left of it, also on a machine
// that is a node.
func TestSwapOff(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	f := fixture(t, &critest.Runtime{})
	f.Services.Put("zramswap.service", machine.ServiceState{Enabled: true, Active: "active", Sub: "exited"})
	f.WriteFiles(t, map[string]string{
		"/proc/swaps": someSwap, "/etc/fstab": fstab, "/etc/waagent.conf": "ResourceDisk.Format=y\nResourceDisk.EnableSwap=y\n#ResourceDisk.EnableSwap=y\n",
	})
	doc := decode(t, ca.worker()+"node: {swap: off}")
	p, err := plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Empty(t, p.Warnings)
	require.Equal(t, "file:/etc/systemd/system/swap.d/zz-machineadm-off.conf file:/etc/systemd/system/zramswap.service.d/zz-machineadm-off.conf "+
		"file:/etc/fstab file:/etc/waagent.conf swap:off kubeadm:join", ids(p))
	require.Contains(t, p.Changes[2].Diff, "-/swap.img\tnone\tswap\tsw\t0\t0\n")
	require.Equal(t, "stop zramswap.service\n-/dev/zram0 partition 8388604 0 100\n-/swap.img file 1024 0 -2\n", p.Changes[4].Diff)
	f.Commands.OnFunc("swapoff -a", func(context.Context, machine.Command) (machine.Result, error) {
		require.Equal(t, []string{"daemon-reload", "stop zramswap.service"}, f.Services.Calls())
		f.WriteFiles(t, map[string]string{"/proc/swaps": noSwap})
		return machine.Result{}, nil
	})
	installs(t, f, "kubeadm join --config /dev/stdin", ca.joined())
	_, err = apply(t, p)
	require.NoError(t, err)
	for name, want := range map[string]string{
		"/etc/fstab": fstabOff, "/etc/waagent.conf": "ResourceDisk.Format=y\nResourceDisk.EnableSwap=n\n#ResourceDisk.EnableSwap=y\n",
		"/etc/systemd/system/swap.d/zz-machineadm-off.conf": swapDropIn,
	} {
		text, err := f.Machine.FS.ReadFile(name)
		require.NoError(t, err)
		require.Equal(t, want, string(text), name)
	}
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Empty(t, ids(p))

	f.WriteFiles(t, map[string]string{"/proc/swaps": someSwap})
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Equal(t, "swap:off", ids(p), "swap stays managed")
	doc.Spec.Node.Swap = ""
	p, err = plan(t.Context(), f.Machine, doc)
	require.NoError(t, err)
	require.Empty(t, ids(p))
	require.Empty(t, p.Warnings, "nothing that kubeadm applied has changed")
}

// TestSwapStaysOn: a kernel without the memory for what is in swap keeps it on.
func TestSwapStaysOn(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	f.WriteFiles(t, map[string]string{"/proc/swaps": someSwap})
	f.Commands.OnFunc("swapoff -a", func(context.Context, machine.Command) (machine.Result, error) {
		return machine.Result{}, &machine.CommandError{Name: "swapoff", ExitCode: 32, Stderr: "swapoff failed: Cannot allocate memory"}
	})
	p, err := plan(t.Context(), f.Machine, decode(t, newIdentity(t, "node").worker()+"node: {swap: off}"))
	require.NoError(t, err)
	_, err = apply(t, p)
	e := pluginv1.AsError(err)
	require.Equal(t, pluginv1.CodePrecondition, e.Code)
	require.Equal(t, "swap is still on: /dev/zram0", e.Message)
	require.Equal(t, "swapoff failed: Cannot allocate memory", e.Detail)
	require.NotContains(t, f.Commands.Lines(), "kubeadm join --config /dev/stdin")
}

// TestSwapOffInAnImage: everything but the running system is in the image.
func TestSwapOffInAnImage(t *testing.T) {
	t.Parallel()
	document := `{"apiVersion": "` + v1alpha1.APIVersion + `", "kind": "KubernetesNode", "metadata": {"name": "node"},
		"spec": {"role": "controlPlaneInit", "kubernetesVersion": "v1.37.1", "node": {"swap": "off"}}}`
	kind := sdk.For(v1alpha1.APIVersion, v1alpha1.KindKubernetesNode, sdk.PhaseProvisioning, plan)
	for _, files := range []map[string]string{
		{"/etc/fstab": fstab},
		{"/usr/lib/systemd/system/zramswap.service": "[Install]\nWantedBy=multi-user.target\n", "/etc/fstab": fstabOff},
		{"/usr/lib/systemd/system/dev-sdb.swap": "[Swap]\nWhat=/dev/sdb\n", "/etc/waagent.conf": "ResourceDisk.EnableSwap = y\n"},
	} {
		require.NoError(t, machinetest.Converge(t, files, document, kind))
	}
}
