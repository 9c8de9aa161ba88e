//go:build linux

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestClaims: what the document asks of the kernel and of the container runtime is claimed, and what programs set by themselves is assumed.
func TestClaims(t *testing.T) {
	t.Parallel()
	const kernel, proxy = "? kernel.keys.root_maxbytes kernel.keys.root_maxkeys kernel.panic kernel.panic_on_oops vm.overcommit_memory vm.panic_on_oom",
		"? net.ipv4.conf.all.route_localnet net.netfilter.nf_conntrack_max net.netfilter.nf_conntrack_tcp_timeout_close_wait net.netfilter.nf_conntrack_tcp_timeout_established"
	const four = "net.ipv4.conf.all.forwarding net.ipv4.ip_forward "
	const six = "net.ipv6.conf.all.disable_ipv6 net.ipv6.conf.all.forwarding net.ipv6.conf.default.forwarding "
	const join = "cluster: {endpoint: \"a.example.com:6443\"}, discovery: {token: {value: abcdef.0123456789abcdef}, caCertHashes: [\"sha256:" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"]}"
	for name, c := range map[string]struct{ spec, want string }{
		"init":          {"role: controlPlaneInit", "systemd? " + four + kernel + " " + proxy},
		"worker":        {"role: worker, " + join, "systemd? " + kernel + " " + four},
		"worker, IPv6":  {"role: worker, node: {ip: \"fd00:3::1\"}, " + join, "systemd? " + six + kernel},
		"driver":        {"role: worker, kubelet: {cgroupDriver: cgroupfs}, " + join, "cgroupfs " + kernel + " " + four},
		"patched":       {"role: worker, patches: [{target: kubeletconfiguration, patch: \"cgroupDriver: cgroupfs\"}], " + join, "cgroupfs " + kernel + " " + four},
		"protected":     {"role: worker, kubelet: {protectKernelDefaults: true}, " + join, "systemd? " + strings.TrimPrefix(kernel, "? ") + " ? " + four},
		"without proxy": {"role: controlPlaneInit, kubeProxy: {skip: true}", "systemd? " + four + kernel},
		"proxy": {
			"role: controlPlaneInit, kubeProxy: {mode: nftables, config: {conntrack: {maxPerCore: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}}}",
			"systemd? " + four + kernel,
		},
		"IPv6": {
			"role: controlPlaneInit, kubeProxy: {skip: true}, cluster: {podSubnets: [\"fd00:1::/48\"], serviceSubnets: [\"fd00:2::/112\"]}", "systemd? " + six + kernel,
		},
		"ignored": {
			"role: controlPlaneInit, kubeProxy: {skip: true}, ignorePreflightErrors: [FileContent--proc-sys-net-ipv4-ip_forward]", "systemd? " + kernel,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, _ := machinetest.NewImage(t)
			var driver string
			var asked, assumed []string
			m.Claims = func(claim machine.Claim) {
				key, isKernel := strings.CutPrefix(claim.ID, "sysctl:")
				switch {
				case claim.ID == "node:cgroup-driver" && claim.Assumed:
					driver = claim.Value[0] + "?"
				case claim.ID == "node:cgroup-driver":
					driver = claim.Value[0]
				case isKernel && claim.Assumed:
					assumed = append(assumed, key)
				case isKernel:
					asked = append(asked, key)
				}
			}
			_, err := plan(t.Context(), m, decode(t, "{kubernetesVersion: v1.37.1, "+c.spec+"}"))
			require.NoError(t, err)
			want := strings.Fields(c.want)
			assert.Equal(t, want[0], driver)
			slices.Sort(asked)
			slices.Sort(assumed)
			wantAsked, wantAssumed := []string(nil), []string(nil)
			into := &wantAsked
			for _, word := range want[1:] {
				if word == "?" {
					into = &wantAssumed
					continue
				}
				*into = append(*into, word)
			}
			slices.Sort(wantAssumed)
			assert.Equal(t, wantAsked, asked)
			assert.Equal(t, wantAssumed, assumed)
		})
	}
}

// TestRuntimeClaim: a socket of another container runtime contradicts what a ContainerRuntime document assumes.
func TestRuntimeClaim(t *testing.T) {
	t.Parallel()
	for socket, want := range map[string][]string{
		"": nil,
		"criSocket: 'unix:///run/containerd/containerd.sock'": {"containerd"},
		"criSocket: 'unix:///var/run/crio/crio.sock'":         {"crio"},
	} {
		m, _ := machinetest.NewImage(t)
		var got []string
		m.Claims = func(claim machine.Claim) {
			if claim.ID == "node:container-runtime" {
				require.False(t, claim.Assumed)
				require.Equal(t, "spec.node.criSocket", claim.Field)
				got = claim.Value
			}
		}
		_, err := plan(t.Context(), m, decode(t, "{kubernetesVersion: v1.37.1, role: controlPlaneInit, node: {"+socket+"}}"))
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
}
