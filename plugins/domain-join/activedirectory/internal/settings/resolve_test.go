package settings

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// resolve resolves a spec on a machine with this operating system and host name.
func resolve(t testing.TB, goos, hostname, spec string) (Settings, error) {
	t.Helper()
	f := machinetest.New(t)
	f.Machine.Target.OS, f.Machine.Target.Hostname = goos, hostname
	f.WriteFiles(t, map[string]string{"/etc/passwd": "web:x:33:34::/:/bin/sh\n", "/etc/group": "keys:x:35:\n"})
	return Resolve(f.Machine, parse(t, spec))
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	s, err := resolve(t, "linux", "Node-1", "domain: AD.Example.com")
	require.NoError(t, err)
	assert.Equal(t, Settings{
		Domain: "ad.example.com", Realm: "AD.EXAMPLE.COM", Computer: "NODE-1", FQDN: "node-1.ad.example.com", Transport: Sealed,
		Services: []string{
			"HOST/NODE-1", "HOST/node-1.ad.example.com", "RestrictedKrbHost/NODE-1", "RestrictedKrbHost/node-1.ad.example.com",
		},
		EncryptionTypes: []int32{18, 17}, Keytab: Keytab{Path: "/etc/krb5.keytab", Mode: 0o600}, Krb5Conf: true,
	}, s)
}

// TestTraps: values with which the join succeeds and something else does not are a warning.
func TestTraps(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		"computerName: node-1\nfqdn: NODE-1.other.org":                           "",
		"computerName: node-1\nfqdn: db-1.ad.example.com":                        "spec.fqdn",
		"fqdn: db-1.ad.example.com":                                              "",
		"computerName: a-long-nam-NIMH\nfqdn: a-long-name-of-a-node.example.com": "",
		"encryptionTypes: [rc4-hmac]":                                            "spec.encryptionTypes",
		"encryptionTypes: [rc4-hmac, aes256-cts-hmac-sha1-96]":                   "",
		"servers: [dc1.ad.example.com, dc1.example.org]":                         "spec.servers[1]",
		"servers: [dc1.example.org]\nstate: absent":                              "",
	} {
		s, err := resolve(t, "linux", "node-1", "domain: ad.example.com\n"+spec)
		require.NoError(t, err)
		got := ""
		for _, w := range s.Warnings {
			got += w.Field
		}
		assert.Equal(t, want, got, spec)
	}
}

func TestResolved(t *testing.T) {
	t.Parallel()
	s, err := resolve(t, "linux", "ignored", `domain: ad.example.com
state: present
computerName: node-1
fqdn: Node-1.Example.com
organizationalUnit: OU=Nodes,DC=ad,DC=example,DC=com
servers: [DC2.ad.example.com, dc1.ad.example.com]
transport: starttls
ca: @CA@
credentials: {username: joiner, password: {value: c4n4ry}}
servicePrincipalNames: [host/NODE-1.example.com, HTTP/node-1.example.com, RestrictedKrbHost/node-1]
encryptionTypes: [rc4-hmac, aes256-cts-hmac-sha1-96]
existingAccount: reuse
keytab: {path: /etc/keys, owner: "web:keys", mode: "0640"}
krb5Conf: {manage: false}
sssd: {manage: true}`)
	require.NoError(t, err)
	require.NotNil(t, s.CA)
	assert.Equal(t, "joiner", s.Credentials.Username)
	assert.Equal(t, canary, string(s.Credentials.Password.Reveal()))
	s.CA, s.Credentials = nil, nil
	assert.Equal(t, Settings{
		Domain: "ad.example.com", Realm: "AD.EXAMPLE.COM", Computer: "NODE-1", FQDN: "node-1.example.com",
		Unit: "OU=Nodes,DC=ad,DC=example,DC=com", Servers: []string{"dc2.ad.example.com", "dc1.ad.example.com"}, Transport: StartTLS,
		Services: []string{
			"HOST/NODE-1", "HOST/node-1.example.com", "RestrictedKrbHost/NODE-1", "RestrictedKrbHost/node-1.example.com",
			"HTTP/node-1.example.com",
		},
		EncryptionTypes: []int32{18, 23}, Reuse: true, SSSD: true,
		Keytab: Keytab{Path: "/etc/keys", Mode: 0o640, Owner: sdk.Owner{UID: 33, GID: 35}},
	}, s)
	s, err = resolve(t, "linux", "node-1", domain+"ca: @CA@\nstate: absent\nleave: disable")
	require.NoError(t, err)
	assert.Equal(t, LDAPS, s.Transport)
	assert.True(t, s.Absent && s.Disable)
}

// TestNames: a machine without a usable host name is a Precondition that names the fields to give.
func TestNames(t *testing.T) {
	t.Parallel()
	const empty, local = "the host name of this machine is empty", "the host name of this machine is localhost, as on any machine without a name of its own"
	for _, c := range []struct{ hostname, spec, want string }{
		{"node-1", "", "NODE-1 node-1.ad.example.com"},
		{" NODE-1.Example.org\n", "", "NODE-1 node-1.example.org"},
		{"control-plane-01", "", "CONTROL-PL-GTYY control-plane-01.ad.example.com"},
		{"control-plane-01", "fqdn: CONTROL-PLANE-02.ad.example.com", "CONTROL-PL-2PDY control-plane-02.ad.example.com"},
		{"localhost", "computerName: a\nfqdn: b.c", "A b.c"},
		{"", "", "spec.computerName: " + empty + "\nspec.fqdn: " + empty},
		{"localhost", "", "spec.computerName: " + local + "\nspec.fqdn: " + local},
		{"LocalHost.localdomain", "computerName: a", "spec.fqdn: " + local},
		{"localhost", "fqdn: a.b", "spec.computerName: " + local},
		{"123", "", "spec.computerName: the host name of this machine cannot be the name of an account"},
		{"node_1", "", "spec.computerName: the host name of this machine cannot be the name of an account\nspec.fqdn: the host name of this machine is not a DNS name"},
		{"node_1", "computerName: a\nfqdn: b.c", "A b.c"},
		{"n\u00f6de-with-a-long-name", "", "spec.computerName: the host name of this machine cannot be the name of an account\nspec.fqdn: the host name of this machine is not a DNS name"},
	} {
		s, err := resolve(t, "linux", c.hostname, domain+c.spec)
		if err == nil {
			assert.Equal(t, c.want, s.Computer+" "+s.FQDN, c.hostname)
			continue
		}
		known := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, known.Code)
		assert.Equal(t, c.want, shown(known.Violations), c.hostname)
		for _, v := range known.Violations {
			assert.Equal(t, "set another host name, or give "+v.Field, v.Hint)
		}
	}
}

// TestMissing: everything that the machine lacks is reported at once.
func TestMissing(t *testing.T) {
	t.Parallel()
	_, err := resolve(t, "linux", "123", domain+"keytab: {owner: 'no:body'}")
	assert.Equal(t, "spec.computerName: the host name of this machine cannot be the name of an account\n"+
		"spec.keytab.owner: this machine has no such user or group", shown(pluginv1.AsError(err).Violations))
}

// TestImage: an image has no host name and no users yet.
func TestImage(t *testing.T) {
	t.Parallel()
	m, _ := machinetest.NewImage(t)
	m.Target.OS, m.Target.Hostname = "linux", ""
	s, err := Resolve(m, parse(t, domain+"fqdn: a.example.com\nkeytab: {owner: 'no:body'}\nservicePrincipalNames: [HTTP/a]"))
	require.NoError(t, err)
	assert.Empty(t, s.Computer)
	assert.Equal(t, []string{"HOST/a.example.com", "RestrictedKrbHost/a.example.com", "HTTP/a"}, s.Services)
}

// TestUnsupported: a field that means nothing for the operating system is refused, whatever its value.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ goos, spec, want string }{
		{"linux", "offlineJoinBlob: {value: YzRuNHJ5}\nwindows: {}", "spec.offlineJoinBlob: is for Windows only\nspec.windows: is for Windows only"},
		{"windows", "offlineJoinBlob: {value: YzRuNHJ5}\nwindows: {rename: true}\nexistingAccount: reuse\norganizationalUnit: 'OU=a,DC=ad,DC=example,DC=com'", ""},
		{"windows", "oneTimePassword: {value: c4n4ry}", ""},
		{
			"windows", "transport: ldaps\nca: @CA@\nservicePrincipalNames: [HTTP/a]\nencryptionTypes: [rc4-hmac]\nkeytab: {}\nkrb5Conf: {}\nsssd: {}",
			"spec.transport: W\nspec.ca: W\nspec.servicePrincipalNames: W\nspec.encryptionTypes: W\nspec.keytab: W\nspec.krb5Conf: W\nspec.sssd: W",
		},
	} {
		_, err := resolve(t, c.goos, "node-1", domain+c.spec)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		known := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodeUnsupported, known.Code)
		got := shown(known.Violations)
		if c.goos == "windows" {
			got = strings.ReplaceAll(got, "is not for Windows, which decides it by itself", "W")
		}
		assert.Equal(t, c.want, got)
		assert.NotContains(t, fmt.Sprint(known), canary)
	}
	_, err := resolve(t, "linux", "", domain+"windows: {}\nleave: delete")
	assert.Equal(t, pluginv1.CodeInvalidConfig, pluginv1.AsError(err).Code, "what is invalid is so everywhere")
}
