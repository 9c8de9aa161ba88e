//go:build linux

package main

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/sdk/machine"
)

// TestOverriddenKubelet: a file of the machine that gives the kubelet another value than the document ends the plan. Where only the kubelet
// that runs shows it, the join ends with an error, and a plan of the node has a warning.
func TestOverriddenKubelet(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	spec := ca.worker() + "node: {ip: 192.0.2.1}\nkubelet: {maxPods: 50}\n"
	for name, c := range map[string]struct {
		files map[string]string
		unit  machine.ServiceState
		says  string
	}{
		"Debian": {
			map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=\"--node-ip=198.51.100.1\"\n"},
			machine.ServiceState{},
			"/etc/default/kubelet gives the kubelet --node-ip with another value than the document, and that is in force",
		},
		"RHEL":        {map[string]string{"/etc/sysconfig/kubelet": "KUBELET_EXTRA_ARGS=--max-pods=110\n"}, machine.ServiceState{}, "/etc/sysconfig/kubelet gives the kubelet --max-pods"},
		"unit":        {nil, machine.ServiceState{Environment: []string{"KUBELET_EXTRA_ARGS=--max-pods 110"}}, "Environment= of the service kubelet gives the kubelet --max-pods"},
		"same values": {map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--max-pods=50 --v=4\n"}, machine.ServiceState{}, ""},
		"directory": {
			map[string]string{"/etc/kubelet.d/10-site.conf": "kind: KubeletConfiguration\nmaxPods: 60\n", "/etc/kubelet.d/README": "maxPods: 70\n"},
			machine.ServiceState{Command: []string{"/usr/bin/kubelet", "--config-dir=/etc/kubelet.d"}},
			"/etc/kubelet.d/10-site.conf gives the kubelet maxPods",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t, &critest.Runtime{})
			c.unit.Enabled, c.unit.Active = true, "activating"
			f.Services.Put("kubelet", c.unit)
			f.WriteFiles(t, c.files)
			_, err := plan(t.Context(), f.Machine, decode(t, spec))
			if c.says == "" {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.NotNil(t, e)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.Contains(t, e.Violations[0].Message, c.says)
		})
	}

	f := fixture(t, &critest.Runtime{})
	const own = "files: [{path: /etc/default/kubelet, content: KUBELET_EXTRA_ARGS=--max-pods=20}]\n"
	_, err := plan(t.Context(), f.Machine, decode(t, spec+own))
	require.ErrorContains(t, err, "/etc/default/kubelet gives the kubelet --max-pods", "a file of the document itself")
	f.WriteFiles(t, map[string]string{"/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--max-pods=110\n"})
	_, err = plan(t.Context(), f.Machine, decode(t, spec+"files: [{path: /etc/default/kubelet, content: KUBELET_EXTRA_ARGS=--v=4}]\n"))
	require.NoError(t, err, "the document replaces the file")

	f = fixture(t, &critest.Runtime{})
	p, err := plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	installs(t, f, "kubeadm join --config /dev/stdin", ca.joined())
	f.Services.Put("kubelet", machine.ServiceState{Enabled: true, Active: "active", MainPID: 7})
	f.WriteFiles(t, map[string]string{"/proc/7/cmdline": "/usr/bin/kubelet\x00--max-pods=110\x00--node-ip=192.0.2.1\x00"})
	const says = "the command line of the running service (systemctl cat kubelet) gives the kubelet --max-pods"
	_, err = apply(t, p)
	require.ErrorContains(t, err, says)
	p, err = plan(t.Context(), f.Machine, decode(t, spec))
	require.NoError(t, err)
	require.Empty(t, p.Changes)
	require.Len(t, p.Warnings, 1)
	require.Contains(t, p.Warnings[0].Message, says)
}
