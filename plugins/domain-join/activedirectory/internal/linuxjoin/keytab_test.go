//go:build linux

package linuxjoin

import (
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/directory"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

const (
	node  = "NODE$@AD.EXAMPLE.TEST"
	host  = "host/NODE@AD.EXAMPLE.TEST"
	fqdn  = "host/node.ad.example.test@AD.EXAMPLE.TEST"
	www   = "HTTP/www.example.test@AD.EXAMPLE.TEST"
	other = "OTHER$@AD.EXAMPLE.TEST"
)

// shown returns the entries, in order, each with the first byte of its key.
func shown(t *testing.T, data []byte) (lines []string) {
	t.Helper()
	entries, err := keytab.Parse(data)
	require.NoError(t, err)
	for _, e := range entries {
		lines = append(lines, fmt.Sprintf("%s %d %d %02x", e.Principal, e.Version, e.Key.Type, e.Key.Value[0]))
	}
	return lines
}

// whole are the entries of a version under all names.
func whole(version uint32, keys ...kerberos.Key) (entries []keytab.Entry) {
	for _, principal := range []string{node, host, fqdn, www} {
		for _, k := range keys {
			entries = append(entries, entry(principal, version, k))
		}
	}
	return entries
}

func TestKeytabFile(t *testing.T) {
	t.Parallel()
	strong, weak := key(18, 0xa5), key(17, 0xb5)
	all := shown(t, keytab.Marshal(whole(5, strong, weak)))
	for name, tt := range map[string]struct {
		have []keytab.Entry
		want []string // behind the keys of the new version
	}{
		"empty": {},
		"other accounts": {
			[]keytab.Entry{entry(other, 1, key(18, 7)), entry(www, 5, key(18, 8))},
			[]string{other + " 1 18 07", www + " 5 18 08"},
		},
		"the version before": {
			whole(4, key(18, 0xa4)), []string{node + " 4 18 a4", host + " 4 18 a4", fqdn + " 4 18 a4", www + " 4 18 a4"},
		},
		"older ones": {
			append(whole(3, key(18, 0xa3)), append([]keytab.Entry{entry(other, 3, key(18, 7))}, whole(1, key(18, 0xa1))...)...),
			[]string{other + " 3 18 07"},
		},
		"keys of a new account with the name": {whole(9, key(18, 0xa9)), nil},
		"the same version with another key":   {whole(5, key(18, 0xff)), nil},
		"a name of the account's old host": {
			[]keytab.Entry{entry(node, 3, key(18, 0xa3)), entry("host/old@AD.EXAMPLE.TEST", 3, key(18, 0xa3))}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := of(machinetest.New(t), nil)
			j.entries = tt.have
			spec := j.keytabFile([]kerberos.Key{strong, weak}, 5)
			require.Equal(t, append(append([]string{}, all...), tt.want...), shown(t, spec.Content))
			require.True(t, spec.Sensitive)
			require.EqualValues(t, 0o600, spec.Mode)
		})
	}
}

// TestKeytabConverged: a file with all that is wanted stays, whatever the order of its entries and what else it has.
func TestKeytabConverged(t *testing.T) {
	t.Parallel()
	keys := []kerberos.Key{key(18, 0xa5), key(17, 0xb5)}
	f := machinetest.New(t)
	entries := append([]keytab.Entry{entry(other, 1, key(18, 7))}, whole(5, keys...)...)
	entries = append(entries, entry(www, 1, key(18, 9)))
	entries = append(entries, whole(4, key(18, 0xa4))...)
	require.NoError(t, f.Machine.FS.WriteFile("/etc/krb5.keytab", keytab.Marshal(entries), 0o600))
	j := of(f, nil)
	require.NoError(t, j.load())
	change, err := sdk.File(f.Machine, j.keytabFile(keys, 5))
	require.NoError(t, err)
	require.Nil(t, change)
	j.s.Services = append(j.s.Services, "HTTP/new.example.test")
	change, err = sdk.File(f.Machine, j.keytabFile(keys, 5))
	require.NoError(t, err)
	require.NotNil(t, change)
	require.NotContains(t, change.Diff, "\xa5")
	require.NoError(t, change.Do(t.Context(), quiet{}))
	require.NoError(t, j.load())
	got, version := keytab.Keys(j.entries, "HTTP/new.example.test@AD.EXAMPLE.TEST")
	require.Equal(t, keys, got)
	require.EqualValues(t, 5, version)
}

// TestLoad: a file that is no keytab is an error that waiting does not cure.
func TestLoad(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	j := of(f, nil)
	require.NoError(t, j.load())
	require.Empty(t, j.entries)
	f.WriteFiles(t, map[string]string{"/etc/krb5.keytab": "c4n4ry"})
	require.EqualError(t, j.load(), "Precondition: /etc/krb5.keytab: the file is no keytab of version 2: "+
		"spec.keytab.path: /etc/krb5.keytab: the file is no keytab of version 2")
	require.NoError(t, os.Remove(f.Root+"/etc/krb5.keytab"))
	for domain, mine := range map[string]bool{"ad.example.test": true, "other.example.test": false} {
		require.NoError(t, j.unfinished.Begin(newPassword{Domain: domain, Computer: "NODE", Password: "c4n4ry"}))
		require.NoError(t, j.load())
		require.Equal(t, mine, j.begun != nil)
	}
}

func TestDifferences(t *testing.T) {
	t.Parallel()
	services := []string{"HOST/NODE", "HOST/node.ad.example.test", "HTTP/www.example.test"}
	for name, tt := range map[string]struct {
		account directory.Account
		want    string
	}{
		"none": {
			directory.Account{
				DNSName: "NODE.ad.example.test", EncryptionTypes: 0x18,
				Services: []string{"http/WWW.example.test", "host/node", "X/y", "HOST/NODE.ad.example.test"},
			},
			"[]",
		},
		"new": {
			directory.Account{},
			"[{dNSHostName spec.fqdn [node.ad.example.test]} {servicePrincipalName spec.servicePrincipalNames " +
				"[HOST/NODE HOST/node.ad.example.test HTTP/www.example.test]} {msDS-SupportedEncryptionTypes spec.encryptionTypes [24]}]",
		},
		"a service": {
			directory.Account{DNSName: "node.ad.example.test", Services: services[:2], EncryptionTypes: 0x18},
			"[{servicePrincipalName spec.servicePrincipalNames [HTTP/www.example.test]}]",
		},
		"more encryption types": {
			directory.Account{DNSName: "node.ad.example.test", Services: services, EncryptionTypes: 0x1c},
			"[{msDS-SupportedEncryptionTypes spec.encryptionTypes [24]}]",
		},
	} {
		require.Equal(t, tt.want, fmt.Sprint(of(machinetest.New(t), nil).differences(tt.account)), name)
	}
	for want, types := range map[uint32][]int32{0x10: {18}, 0x1c: {18, 17, 23}, 0: nil} {
		j := of(machinetest.New(t), func(s *settings.Settings) { s.EncryptionTypes = types })
		require.Equal(t, want, j.encryptionBits())
	}
}
