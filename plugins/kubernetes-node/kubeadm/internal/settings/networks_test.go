package settings

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// networks returns a spec with the fields of a line of testdata/networks.txt.
func networks(pods, services, args string) string {
	list := func(name, values string) string {
		if values == "-" {
			return ""
		}
		return name + `: ["` + strings.ReplaceAll(values, ",", `", "`) + `"], `
	}
	text := initSpec + "cluster: {" + list("podSubnets", pods) + list("serviceSubnets", services) + "}\n"
	if name, value, ok := strings.Cut(args, "="); ok {
		text += "controllerManager: {args: [{name: " + name + ", value: '" + value + "'}]}\n"
	}
	return text
}

// TestNetworks: a document has the networks that kubeadm accepts, and no others.
func TestNetworks(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile("testdata/networks.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(table)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		require.Len(t, f, 4, line)
		_, violations, err := spec(t, networks(f[1], f[2], f[3]))
		require.NoError(t, err)
		assert.Equal(t, f[0] == "yes", len(violations) == 0, "%s%s", line, shown(violations))
		for _, v := range violations {
			assert.Regexp(t, `^spec\.(cluster\.(pod|service)Subnets\[\d\]|controllerManager\.args\[0\]\.value)$`, v.Field, line)
		}
	}
}

// TestAdvertised: each way to give the address of the API server that is not node.advertiseAddress leads to it.
func TestAdvertised(t *testing.T) {
	t.Parallel()
	s, violations, err := spec(t, initSpec+"apiServer: {args: [{name: v, value: '2'}, {name: advertise-address, value: 192.0.2.1}]}")
	require.NoError(t, err)
	require.Empty(t, violations)
	require.Len(t, s.Warnings, 1)
	assert.Equal(t, "spec.apiServer.args[1].name", s.Warnings[0].Field)
	assert.Contains(t, s.Warnings[0].Message, "set spec.node.advertiseAddress instead")

	_, violations, err = spec(t, initSpec+"node: {ip: 10.100.0.1, kubeletArgs: [{name: node-ip, value: '10.200.0.1,fd00:1:2:3::2'}]}")
	require.NoError(t, err)
	require.Len(t, violations, 1)
	assert.Contains(t, violations[0].Hint, "set spec.node.advertiseAddress")

	s, violations, err = spec(t, initSpec+"node: {ip: '10.200.0.1,fd00:1:2:3::2', advertiseAddress: 10.100.0.1}")
	require.NoError(t, err)
	require.Empty(t, violations)
	assert.Equal(t, "10.100.0.1", s.Advertised.String())
	assert.Len(t, s.NodeIPs, 2)
}

// TestFirstFamily: the API server does not start with an address of another family than the first range of services.
func TestFirstFamily(t *testing.T) {
	t.Parallel()
	const ipv6 = "cluster: {serviceSubnets: ['2001:db8:96::/112', 10.96.0.0/16]}\n"
	for text, c := range map[string]struct{ refused, warned string }{
		ipv6 + "node: {ip: 192.0.2.1}":                                    {refused: "spec.node.ip"},
		ipv6 + "node: {ip: '192.0.2.1,2001:db8::1'}":                      {refused: "spec.node.ip"},
		ipv6 + "node: {ip: '192.0.2.1', advertiseAddress: '2001:db8::1'}": {},
		ipv6 + "node: {ip: '2001:db8::1,192.0.2.1'}":                      {},
		ipv6: {warned: "spec.node.advertiseAddress"},
		ipv6 + "node: {ipFrom: {interface: eth0, family: 'ipv6,ipv4'}}":  {},
		"cluster: {serviceSubnets: [10.96.0.0/16, '2001:db8:96::/112']}": {},
		"cluster: {}": {},
		ipv6 + "node: {ip: 192.0.2.1}\n" + server("endpoint-reconciler-type", "none"): {},
		ipv6 + server("advertise-address", "'2001:db8::1'"):                           {warned: "spec.apiServer.args[0].name"},
	} {
		s, violations, err := spec(t, initSpec+text)
		require.NoError(t, err, text)
		var got struct{ refused, warned string }
		if len(violations) > 0 {
			got.refused = violations[0].Field
		}
		if len(s.Warnings) > 0 {
			got.warned = s.Warnings[0].Field
		}
		assert.Equal(t, c, got, text)
	}
}

func server(name, value string) string {
	return "apiServer: {args: [{name: " + name + ", value: " + value + "}]}\n"
}

// TestOverlap: ranges of pods and services that overlap are a warning, also where one is the default.
func TestOverlap(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"10.244.0.0/16,2001:db8:42::/56 10.96.0.0/16,2001:db8:42:1::/112": "contains spec.cluster.serviceSubnets: ",
		"10.0.0.0/8 -":                  "contains the default of spec.cluster.serviceSubnets, 10.96.0.0/12: ",
		"10.100.0.0/16 -":               "is within the default of spec.cluster.serviceSubnets, 10.96.0.0/12: ",
		"10.96.0.0/16 10.96.0.0/16":     "is within spec.cluster.serviceSubnets: ",
		"2001:db8::/56 -":               "",
		"- 10.244.0.0/16":               "",
		"10.244.0.0/16,2001:db8::/56 -": "",
	} {
		pods, services, _ := strings.Cut(line, " ")
		s, violations, err := spec(t, networks(pods, services, "-"))
		require.NoError(t, err)
		require.Empty(t, violations, line)
		if want == "" {
			assert.Empty(t, s.Warnings, line)
			continue
		}
		require.Len(t, s.Warnings, 1, line)
		assert.Equal(t, "spec.cluster.podSubnets", s.Warnings[0].Field)
		assert.True(t, strings.HasPrefix(s.Warnings[0].Message, want), s.Warnings[0].Message)
	}
}
