//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/internal/cri/critest"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestReady: everything that would make kubeadm fail is reported at once, and none of it is final.
func TestReady(t *testing.T) {
	t.Parallel()
	ca := newIdentity(t, "node")
	nothing := func(*machinetest.Fixture, *critest.Runtime) {}
	for name, c := range map[string]struct {
		prepare func(*machinetest.Fixture, *critest.Runtime)
		spec    string
		says    []string
	}{
		"programs": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Commands.Absent("kubeadm", "kubelet")
		}, ca.worker(), []string{"kubeadm is not installed", "kubelet is not installed"}},
		"programs of kubeadm": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Commands.Absent("kubeadm", "losetup", "cp")
		}, ca.worker() + "ignorePreflightErrors: [FileExisting-cp]\n", []string{"kubeadm is not installed", "losetup is not installed, which kubeadm v1.37.1 requires"}},
		"programs that nothing asks for": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Commands.Absent("losetup", "crictl")
		}, ca.worker() + "skipPhases: [preflight]\n", nil},
		"skew": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Commands.On("kubelet --version", machine.Result{Stdout: []byte("Kubernetes v1.31.0")})
		}, ca.worker(), []string{"three minor versions older"}},
		"all": {func(f *machinetest.Fixture, r *critest.Runtime) {
			f.Machine.Services, f.Kernel.Parameters["net/ipv4/ip_forward"], r.NotReady = machinetest.NewServices(), "0", "ContainerdNotReady"
			f.WriteFiles(t, map[string]string{
				"/proc/swaps":    "Filename Type Size Used Priority\n/dev/sda2 partition 1 0 -2\n",
				"/proc/net/tcp":  "  sl  local_address rem_address   st\n   0: 00000000:280A 00000000:0000 0A 0\n   1: 0100007F:192B 0100007F:1F90 01 0\n",
				"/proc/net/tcp6": "  sl  local_address rem_address   st\n   0: 00000000000000000000000000000000:192B 0:0000 0A 0\n",
			})
		}, creator, []string{
			"the service kubelet is not installed", "it is not ready: ContainerdNotReady", "swap is on", "net.ipv4.ip_forward is not 1",
			"listens on the port 10250", "listens on the port 6443",
		}},
		"tolerated": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.WriteFiles(t, map[string]string{
				"/proc/swaps":   "Filename\n/dev/sda2\n",
				"/proc/net/tcp": "   0: 00000000:280A 00000000:0000 0A 0\n   1: 00000000:192B 00000000:0000 0A 0\n",
			})
		}, ca.worker() + "kubelet: {config: {failSwapOn: false}}\nignorePreflightErrors: [port-10250]\n", nil},
		"clock": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Commands.On(askVersion, machine.Result{Stdout: []byte(`{"clientVersion": {"gitVersion": "v1.37.1", "buildDate": "2999-08-01T00:00:00Z"}}`)})
		}, ca.worker(), []string{"the installed kubeadm was built on 2999-08-01"}},
		"localhost": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Machine.Target.Hostname = "localhost.localdomain"
		}, ca.worker(), []string{"is localhost.localdomain, as on any machine"}},
		"localhost by name": {func(f *machinetest.Fixture, _ *critest.Runtime) {
			f.Machine.Target.Hostname = "localhost"
		}, ca.worker() + "node: {nameFrom: {hostname: short}}\n", []string{"the host name is localhost"}},
		"host": {
			nothing, ca.worker() + "node: {name: other}\nprofiles: [disa-k8s-v2r6]\n",
			[]string{"a profile demands that the node has the host name"},
		},
		"socket": {
			nothing, ca.worker() + "node: {criSocket: 'unix:///run/none.sock'}\n",
			[]string{"the container runtime does not answer"},
		},
		"images": {func(f *machinetest.Fixture, r *critest.Runtime) {
			r.Images = []string{"r.test/etcd:3"}
			f.Commands.On("kubeadm config images list --config /dev/stdin", machine.Result{Stdout: []byte("r.test/etcd:3\nr.test/api:1\nr.test/dns:2\n")})
		}, creator + "node: {imagePullPolicy: Never}\n", []string{"r.test/api:1 is not on the machine", "r.test/dns:2 is not on the machine"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &critest.Runtime{}
			f := fixture(t, r)
			c.prepare(f, r)
			_, err := plan(t.Context(), f.Machine, decode(t, c.spec))
			if len(c.says) == 0 {
				require.NoError(t, err)
				return
			}
			e := pluginv1.AsError(err)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.False(t, e.Final)
			require.Len(t, e.Violations, len(c.says), "%v", e)
			for i, says := range c.says {
				assert.Contains(t, e.Violations[i].Message, says)
				assert.NotEmpty(t, e.Violations[i].Hint)
			}
		})
	}
}

// TestRuntimeThatStarts: a boot brings the runtime by itself. What it does not bring is said at once.
func TestRuntimeThatStarts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		state  string
		absent bool
		code   pluginv1.Code
		says   string
	}{
		"starts":                 {"activating", false, pluginv1.CodeRetry, "the service none is being started: the container runtime does not answer"},
		"starts, and no kubelet": {"activating", true, pluginv1.CodePrecondition, "the service kubelet is not installed"},
		"does not start":         {"inactive", false, pluginv1.CodePrecondition, "the container runtime does not answer"},
		"has failed":             {"failed", false, pluginv1.CodePrecondition, "the container runtime does not answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := fixture(t, &critest.Runtime{})
			if c.absent {
				f.Machine.Services = machinetest.NewServices()
			}
			services, ok := f.Machine.Services.(*machinetest.Services)
			require.True(t, ok)
			services.Put("none", machine.ServiceState{Active: c.state})
			_, err := plan(t.Context(), f.Machine, decode(t, newIdentity(t, "node").worker()+"node: {criSocket: 'unix:///run/none.sock'}\n"))
			e := pluginv1.AsError(err)
			assert.Equal(t, c.code, e.Code)
			assert.Contains(t, e.Message, c.says)
		})
	}
}

// TestNeeds: what a Sysctl, ContainerRuntime or Timesync document can provide is named, and nothing else.
func TestNeeds(t *testing.T) {
	t.Parallel()
	f := fixture(t, &critest.Runtime{})
	f.Machine.Services, f.Kernel.Parameters["net/ipv4/ip_forward"] = machinetest.NewServices(), "0"
	f.Commands.On(askVersion, machine.Result{Stdout: []byte(`{"clientVersion": {"gitVersion": "v1.36.1", "buildDate": "2999-08-01T00:00:00Z"}}`)})
	services, ok := f.Machine.Services.(*machinetest.Services)
	require.True(t, ok)
	services.Put("crio", machine.ServiceState{ID: "cri-o.service", Active: "inactive"})
	_, err := plan(t.Context(), f.Machine, decode(t, newIdentity(t, "node").worker()+"node: {criSocket: 'unix:///run/crio/crio.sock'}\n"))
	needs := map[string]string{}
	for _, v := range pluginv1.AsError(err).Violations {
		needs[strings.Join(strings.Fields(v.Message)[:3], " ")] = v.Needs
	}
	assert.Equal(t, map[string]string{
		"the clock shows": "clock:", "the container runtime": "unit:cri-o.service#running", "net.ipv4.ip_forward is not": "sysctl:net.ipv4.ip_forward",
		"the service kubelet": "", "the installed kubeadm": "",
	}, needs)
	m, _ := machinetest.NewImage(t)
	planned, err := plan(t.Context(), m, decode(t, newIdentity(t, "node").worker()))
	require.NoError(t, err)
	assert.Equal(t, []string{"unit:containerd.service#running"}, planned.Needs)
}

// TestNoVersion: a program that reports no version ends the plan, whatever else is missing.
func TestNoVersion(t *testing.T) {
	t.Parallel()
	for line, output := range map[string]string{askVersion: "v1.37.1\n", "kubelet --version": " \n"} {
		f := fixture(t, &critest.Runtime{})
		f.Commands.On(line, machine.Result{Stdout: []byte(output)})
		_, err := plan(t.Context(), f.Machine, decode(t, newIdentity(t, "node").worker()))
		require.ErrorContains(t, err, "does not report a version of Kubernetes")
	}
}

// TestForwarding: a machine forwards packets of each family that its cluster has, and kubeadm refuses no machine after that.
func TestForwarding(t *testing.T) {
	t.Parallel()
	const v4, v6, v6default = "net.ipv4.ip_forward is not 1", "net.ipv6.conf.all.forwarding is not 1", "net.ipv6.conf.default.forwarding is not 1"
	cluster := func(pods, services string) string {
		return "role: controlPlaneInit\nkubernetesVersion: v1.37.1\ncluster: {podSubnets: [" + pods + "], serviceSubnets: [" + services + "]}\n"
	}
	const pods4, services4, pods6, services6 = "10.244.0.0/16", "10.96.0.0/16", "'2001:db8:42::/56'", "'2001:db8:43::/112'"
	both := cluster(pods4+", "+pods6, services4+", "+services6)
	join := func(role, endpoint, node string) string {
		return "role: " + role + "\nkubernetesVersion: v1.37.1\ncluster: {endpoint: '" + endpoint + "'}\nnode: {" + node + "}\n" +
			"discovery: {token: {value: " + token + "}, caCertHashes: ['" + newIdentity(t, "node").hash + "']}\n"
	}
	const dns, ip4, ip6 = "api.example.com:6443", "192.0.2.1:6443", "[2001:db8::1]:6443"
	const node4, node6, node46 = "ip: 192.0.2.10", "ip: '2001:db8::10'", "ip: '192.0.2.10,2001:db8::10'"
	for _, c := range []struct {
		spec string
		on   string // ip_forward, conf/all/forwarding, conf/default/forwarding
		says []string
	}{
		{creator, "100", nil},
		{creator, "011", []string{v4}},
		{both, "111", nil},
		{both, "100", []string{v6}},
		{both, "110", []string{v6default}},
		{both, "011", []string{v4}},
		{both, "000", []string{v4, v6}},
		{both, "1--", []string{v6}},
		{both + "ignorePreflightErrors: [FileContent--proc-sys-net-ipv6-conf-default-forwarding]\n", "100", nil},
		{both + "node: {ip: 192.0.2.10}\n", "100", []string{v6}},
		{cluster(pods6, services6), "011", nil},
		{cluster(pods6, services6), "100", []string{v6}},
		{cluster(pods6, services6) + "node: {" + node6 + "}\n", "011", nil},
		{cluster(pods4, services4) + "node: {" + node46 + "}\n", "100", nil},
		{cluster(pods4+", "+pods6, services4), "100", []string{v6}},
		{join("worker", dns, ""), "100", nil},
		{join("worker", dns, ""), "011", nil},
		{join("worker", dns, ""), "000", []string{v4}},
		{join("worker", dns, node46), "100", []string{v6}},
		{join("worker", dns, node46), "111", nil},
		{join("worker", dns, node6), "011", nil},
		{join("worker", dns, node6), "100", []string{v6}},
		{join("worker", dns, node4), "100", nil},
		{join("worker", dns, node4), "011", []string{v4}},
		{join("worker", ip4, node46), "100", []string{v6}},
		{join("worker", ip4, ""), "011", []string{v4}},
		{join("worker", ip6, ""), "100", []string{v6}},
		{join("worker", ip4, node6), "011", []string{v4}},
		{join("controlPlaneJoin", dns, node46), "100", []string{v6}},
		{join("controlPlaneJoin", ip6, ""), "011", nil},
		{join("controlPlaneJoin", dns, "ip: 192.0.2.10, advertiseAddress: '2001:db8::10'"), "100", nil},
	} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			f := fixture(t, &critest.Runtime{})
			for i, name := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding", "net/ipv6/conf/default/forwarding"} {
				delete(f.Kernel.Parameters, name)
				if c.on[i] != '-' {
					f.Kernel.Parameters[name] = c.on[i:i+1] + "\n"
				}
			}
			_, err := plan(t.Context(), f.Machine, decode(t, c.spec))
			if len(c.says) == 0 {
				require.NoError(t, err, c.spec)
				return
			}
			e := pluginv1.AsError(err)
			require.NotNil(t, e, c.spec)
			require.Equal(t, pluginv1.CodePrecondition, e.Code)
			require.False(t, e.Final)
			require.Len(t, e.Violations, len(c.says), "%s%v", c.spec, e)
			for i, says := range c.says {
				assert.Contains(t, e.Violations[i].Message, says)
			}
		})
	}
}
