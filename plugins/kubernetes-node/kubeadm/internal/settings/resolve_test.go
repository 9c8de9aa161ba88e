package settings

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	kubeconfig = `{kind: Config, current-context: a, contexts: [{name: a, context: {cluster: b, user: c}}], clusters: [{name: b, cluster: {server: "https://a:1"}}], users: [{name: c, user: {token: t}}]}`
	initSpec   = "role: controlPlaneInit\nkubernetesVersion: v1.37.1\n"
	joinSpec   = "role: controlPlaneJoin\nkubernetesVersion: v1.37.1\ndiscovery: {kubeconfig: {value: '" + kubeconfig + "'}}\n"
	workerSpec = "role: worker\nkubernetesVersion: v1.37.1\ndiscovery: {kubeconfig: {value: '" + kubeconfig + "'}}\n"
)

// documentOf returns a document in JSON with a spec in YAML.
func documentOf(t testing.TB, text string) []byte {
	t.Helper()
	if !strings.Contains(text, "\ncluster:") {
		text += "\ncluster: {}"
	}
	return settingstest.JSON(t, "spec:\n  "+strings.ReplaceAll(text, "\n", "\n  "))
}

// spec resolves a spec in YAML on a Linux machine unless change makes it another one.
func spec(t testing.TB, text string, change ...func(*machinetest.Fixture)) (Settings, []sdk.Violation, error) {
	t.Helper()
	f := machinetest.New(t)
	f.Machine.Target.OS = "linux"
	for _, c := range change {
		c(f)
	}
	doc := settingstest.Document(t, documentOf(t, text))
	return resolve(f.Machine, doc.Spec, func(name string) ([]netip.Addr, error) {
		switch name {
		case "eth0":
		case "eth2":
			return []netip.Addr{netip.MustParseAddr("fe80::2%eth2"), netip.MustParseAddr("192.0.2.2")}, nil
		default:
			return nil, errors.New("absent")
		}
		return []netip.Addr{
			netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("fe80::1%eth0"), netip.MustParseAddr("192.0.2.1"),
			netip.MustParseAddr("2001:db8::1"),
		}, nil
	})
}

func windows(f *machinetest.Fixture) { f.Machine.Target.OS = "windows" }

// shown joins violations, one a line.
func shown(all []sdk.Violation) string {
	var lines []string
	for _, v := range all {
		lines = append(lines, v.Field+": "+v.Message)
	}
	return strings.Join(lines, "\n")
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, violations, err := spec(t, initSpec, func(f *machinetest.Fixture) { f.Machine.Target.Hostname = "Node-1.Example.com" })
	require.NoError(t, err)
	require.Empty(t, violations)
	assert.Equal(t, "node-1.example.com", s.NodeName)
	assert.Empty(t, s.NodeIPs)
	assert.Equal(t, "/etc/kubernetes/pki", s.Spec.Cluster.CertificatesDir)
	assert.Equal(t, "/run/machineadm-kubernetes-node", s.WorkDir)
	assert.True(t, s.ControlPlane())
	assert.False(t, s.WithHostName())
	assert.Empty(t, s.Kubelet)

	s, violations, err = spec(t, workerSpec, windows)
	require.NoError(t, err)
	require.Empty(t, violations)
	assert.Equal(t, `C:\ProgramData\machineadm-kubernetes-node`, s.WorkDir)
	assert.False(t, s.ControlPlane())
}

// TestImage: an image has no host name and no sources yet, and an empty one no users.
// TestSharedPhases: kubeadm ends with "invalid phase name" for a phase of its other command.
func TestSharedPhases(t *testing.T) {
	t.Parallel()
	const skip = "skipPhases: [preflight, addon/kube-proxy, etcd, etcd-join, control-plane-prepare/download-certs, kubelet-finalize/all, control-plane-join/all]"
	for text, want := range map[string][]string{
		initSpec:   {"preflight", "addon/kube-proxy", "etcd", "kubelet-finalize/all"},
		joinSpec:   {"preflight", "etcd-join", "control-plane-prepare/download-certs", "control-plane-join/all"},
		workerSpec: {"preflight", "etcd-join", "control-plane-prepare/download-certs", "control-plane-join/all"},
	} {
		s, violations, err := spec(t, text+skip)
		require.NoError(t, err)
		require.Empty(t, violations)
		assert.Equal(t, want, s.Spec.SkipPhases, text)
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	m, _ := machinetest.NewImage(t)
	m.Target.OS, m.Target.Hostname = "linux", ""
	doc := settingstest.Document(t, settingstest.JSON(t, `
spec: {role: controlPlaneInit, kubernetesVersion: v1.37.1, cluster: {}, node: {ipFrom: {interface: eth9}, providerIDFrom: {file: /run/absent}}}`))
	s, violations, err := Resolve(m, doc)
	require.NoError(t, err)
	require.Empty(t, violations)
	assert.Empty(t, s.NodeName+s.ProviderID)
}

// TestMachineValues: values that are not there yet are a Precondition, all at once.
func TestMachineValues(t *testing.T) {
	t.Parallel()
	files := func(f *machinetest.Fixture) {
		f.Machine.Target.Hostname = "node-1"
		f.WriteFiles(t, map[string]string{
			"/etc/hosts":    "# a\n127.0.0.1 localhost\n192.0.2.1 node-1.example.com node-1\n",
			"/run/metadata": " A=x\nB = \"q\"\nC='s'\nD=\nE=1\nE=2\n#F=3\n",
			"/run/id":       "\n i-1 \n", "/run/two": "a\nb\n", "/run/large": strings.Repeat("x", maxValueFile+1),
			"/run/data.json": `{"v1": {"zone": "eu-1a", "instance_id": "i-1", "n": 900719925474099312345, "empty": "", "lines": "a\nb", "none": null, "list": []}, "a.b": "x"}`,
			"/run/list.json": "[]", "/run/twice.json": "{}{}", "/run/cut.json": `{"v1": {"instance_id": "i-`,
		})
	}
	for node, want := range map[string]string{
		`{nameFrom: {hostname: short}}`:                                                                           "node-1",
		`{nameFrom: {hostname: fqdn}}`:                                                                            "node-1.example.com",
		`{nameFrom: {file: /run/metadata, key: A, prefix: n-}}`:                                                   "n-x",
		`{name: n, ipFrom: {interface: eth0}}`:                                                                    "n 192.0.2.1",
		`{name: n, ipFrom: {interface: eth0, family: ipv6}}`:                                                      "spec.node.ipFrom: is of another family than the first of the default of spec.cluster.serviceSubnets, 10.96.0.0/12, with which the API server does not start",
		`{name: n, providerIDFrom: {file: /run/id, prefix: "p:///"}}`:                                             "n p:///i-1",
		`{name: n, providerIDFrom: {file: /run/metadata, key: B}}`:                                                "n q",
		`{name: n, providerIDFrom: {file: /run/metadata, key: C}}`:                                                "n s",
		`{name: n, ip: "192.0.2.1,2001:db8::1"}`:                                                                  "n 192.0.2.1 2001:db8::1",
		`{name: n, ipFrom: {interface: eth0, family: "ipv4,ipv6"}}`:                                               "n 192.0.2.1 2001:db8::1",
		`{name: n, ipFrom: {interface: eth0, family: "ipv6,ipv4"}, advertiseAddressFrom: {interface: eth0}}`:      "n 2001:db8::1 192.0.2.1",
		`{name: n, ipFrom: {interface: eth2, family: "ipv4,ipv6"}}`:                                               "spec.node.ipFrom: the value of this machine is not usable: this interface has no global address of the family ipv6",
		`{name: n, ipFrom: {interface: eth0, family: "ipv6,ipv4"}}`:                                               "spec.node.ipFrom: is of another family than the first of the default of spec.cluster.serviceSubnets, 10.96.0.0/12, with which the API server does not start",
		`{name: n, advertiseAddressFrom: {file: /run/id}}`:                                                        "spec.node.advertiseAddressFrom: the value of this machine is not usable: must be one IP address",
		`{name: n, advertiseAddressFrom: {interface: eth0, family: ipv6}}`:                                        "spec.node.advertiseAddressFrom: is of another family than the first of the default of spec.cluster.serviceSubnets, 10.96.0.0/12, with which the API server does not start",
		`{name: n, providerIDFrom: {file: /run/metadata, key: D}}`:                                                "spec.node.providerIDFrom: the value of this machine is not usable: it is empty",
		`{name: n, providerIDFrom: {file: /run/metadata, key: E}}`:                                                "spec.node.providerIDFrom: the value of this machine is not usable: the file has the key twice",
		`{name: n, providerIDFrom: {file: /run/metadata, key: F}}`:                                                "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key",
		`{name: n, providerIDFrom: {file: /run/two}}`:                                                             "spec.node.providerIDFrom: the value of this machine is not usable: it has more than one line or control characters",
		`{name: n, providerIDFrom: {file: /run/large}}`:                                                           "spec.node.providerIDFrom: the value of this machine is not usable: the file has more than 1 MiB",
		`{nameFrom: {file: /run/absent}, ipFrom: {interface: eth1}}`:                                              "spec.node.nameFrom: the value of this machine is not usable: the file does not exist\nspec.node.ipFrom: the value of this machine is not usable: this interface does not exist",
		`{name: n, ipFrom: {file: /run/id}}`:                                                                      "spec.node.ipFrom: the value of this machine is not usable: must be an IP address, or two of different families separated by a comma",
		`{name: n, providerIDFrom: {file: /run/metadata}}`:                                                        "spec.node.providerIDFrom: the value of this machine is not usable: it has more than one line or control characters",
		`{nameFrom: {file: /run/metadata, key: A, prefix: "A "}}`:                                                 "spec.node.nameFrom: the value of this machine is not usable: must be a DNS name: at most 253 lower-case letters, digits, dots and -",
		`{name: n, providerIDFrom: {file: /run/metadata, key: absent}}`:                                           "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.zone, v1.instance_id], prefix: "p:///"}}`: "n p:///eu-1a/i-1",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.n], prefix: "p:///"}}`:                    "n p:///900719925474099312345",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.absent], prefix: "p:///"}}`:               "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key v1.absent",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.zone.more], prefix: "p:///"}}`:            "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key v1.zone.more",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [a.b], prefix: "p:///"}}`:                     "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key a.b",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.none], prefix: "p:///"}}`:                 "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key v1.none",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.list], prefix: "p:///"}}`:                 "spec.node.providerIDFrom: the value of this machine is not usable: v1.list is not a text or a number",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1], prefix: "p:///"}}`:                      "spec.node.providerIDFrom: the value of this machine is not usable: v1 is not a text or a number",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.empty], prefix: "p:///"}}`:                "spec.node.providerIDFrom: the value of this machine is not usable: v1.empty is empty",
		`{name: n, providerIDFrom: {file: /run/data.json, jsonKeys: [v1.lines], prefix: "p:///"}}`:                "spec.node.providerIDFrom: the value of this machine is not usable: v1.lines has more than one line or control characters",
		`{name: n, providerIDFrom: {file: /run/list.json, jsonKeys: [v1]}}`:                                       "spec.node.providerIDFrom: the value of this machine is not usable: the file does not have the key v1",
		`{name: n, providerIDFrom: {file: /run/twice.json, jsonKeys: [v1]}}`:                                      "spec.node.providerIDFrom: the value of this machine is not usable: the file is not an object in JSON",
		`{name: n, providerIDFrom: {file: /run/cut.json, jsonKeys: [v1]}}`:                                        "spec.node.providerIDFrom: the value of this machine is not usable: the file is not an object in JSON",
		`{name: n, providerIDFrom: {file: /run, prefix: x}}`:                                                      "file: ",
	} {
		s, violations, err := spec(t, initSpec+"node: "+node, files)
		require.Empty(t, violations, node)
		if err != nil {
			known := pluginv1.AsError(err)
			assert.Equal(t, pluginv1.CodePrecondition, known.Code, node)
			if strings.HasPrefix(want, "spec.") {
				assert.Equal(t, want, shown(known.Violations), node)
			}
			continue
		}
		got := s.NodeName
		for _, ip := range s.NodeIPs {
			got += " " + ip.String()
		}
		assert.Equal(t, want, strings.TrimSpace(got+" "+s.ProviderID), node)
	}
	_, _, err := spec(t, initSpec+"node: {nameFrom: {hostname: fqdn}}")
	assert.Contains(t, shown(pluginv1.AsError(err).Violations), "neither the host name nor /etc/hosts has a domain")
	_, _, err = spec(t, initSpec, func(f *machinetest.Fixture) { f.Machine.Target.Hostname = "node_1" })
	assert.Contains(t, shown(pluginv1.AsError(err).Violations), "spec.node.name: the host name of this machine must be a DNS name")
	_, _, err = spec(t, initSpec+"files: [{path: /etc/x, content: x, owner: 'no:body'}]")
	assert.Equal(t, "spec.files[0].owner: this machine has no such user or group", shown(pluginv1.AsError(err).Violations))
}
