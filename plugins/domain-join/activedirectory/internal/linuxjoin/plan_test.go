//go:build linux

package linuxjoin

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestImage: krb5.conf is written in an image, and the account is left for the first boot.
func TestImage(t *testing.T) {
	t.Parallel()
	m, root := machinetest.NewImage(t)
	f := &machinetest.Fixture{Machine: m}
	s := of(f, func(s *settings.Settings) { s.Computer, s.FQDN, s.SSSD = "", "", true }).s
	p, err := Plan(offline(t), m, s)
	require.NoError(t, err)
	require.Equal(t, "account", p.Changes[0].ID)
	require.True(t, p.Changes[0].NeedsLive)
	do(t, p.Changes[1:])
	tree := machinetest.Tree(t, root)
	require.Contains(t, tree, krb5Own)
	require.NotContains(t, tree, "keytab")
	require.NotContains(t, tree, "sssd")
	p, err = Plan(offline(t), m, s)
	require.NoError(t, err)
	require.Len(t, p.Changes, 1, "the account alone")
	s.Absent = true
	p, err = Plan(offline(t), m, s)
	require.NoError(t, err)
	require.Equal(t, "file:"+krb5Own+" file:"+krb5Conf, do(t, p.Changes))
}

// TestMulticastOnly: a domain below .local is not found where multicast ends the search.
func TestMulticastOnly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"hosts: files mdns4_minimal [NOTFOUND=return] dns\n":              true, // of Debian with libnss-mdns
		"hosts:\tfiles mdns_minimal [notfound=return] resolve dns # a\n":  true,
		"hosts: files dns mdns4_minimal [NOTFOUND=return]\n":              false,
		"hosts: files mdns4_minimal dns\n":                                false,
		"hosts: files dns\n#hosts: mdns4_minimal [NOTFOUND=return] dns\n": false,
		"passwd: mdns4_minimal [NOTFOUND=return]\n":                       false,
		"": false,
	} {
		f := machinetest.New(t)
		f.WriteFiles(t, map[string]string{"/etc/nsswitch.conf": text})
		got, err := of(f, nil).multicastOnly()
		require.NoError(t, err)
		require.Equal(t, want, got, text)
	}
	got, err := of(machinetest.New(t), nil).multicastOnly()
	require.NoError(t, err)
	require.False(t, got, "no file")
}

// TestLeaveOfStranger: a machine that never joined asks no network, and nothing changes.
func TestLeaveOfStranger(t *testing.T) {
	t.Parallel()
	for _, krb5Conf := range []bool{false, true} {
		f := machinetest.New(t)
		entries := []keytab.Entry{entry(other, 1, key(18, 7)), entry(www, 1, key(18, 8))}
		require.NoError(t, f.Machine.FS.WriteFile("/etc/krb5.keytab", keytab.Marshal(entries), 0o600))
		s := of(f, func(s *settings.Settings) { s.Absent, s.SSSD, s.Krb5Conf = true, true, krb5Conf }).s
		p, err := Plan(offline(t), f.Machine, s)
		require.NoError(t, err)
		require.Empty(t, p.Changes)
		require.Empty(t, f.Commands.Lines())
	}
}

// TestForget: a machine that leaves keeps the keys of other accounts; without any the file goes, and with it the stored password.
func TestForget(t *testing.T) {
	t.Parallel()
	for _, others := range [][]keytab.Entry{nil, {entry(other, 1, key(18, 7)), entry(www, 1, key(18, 8))}} {
		f := machinetest.New(t)
		require.NoError(t, f.Machine.FS.WriteFile("/etc/krb5.keytab", keytab.Marshal(append(whole(5, key(18, 5)), others...)), 0o600))
		j := of(f, absent)
		require.NoError(t, j.unfinished.Begin(newPassword{Domain: j.s.Domain, Computer: j.s.Computer, Password: "c4n4ry"}))
		require.NoError(t, j.load())
		var result sdk.Plan
		require.NoError(t, j.planForget(&result))
		for _, c := range result.Changes {
			require.NotContains(t, c.Summary+c.Diff, "c4n4ry")
			require.NotContains(t, c.Diff, "\x05\x05")
		}
		require.Equal(t, "file:/etc/krb5.keytab password", do(t, result.Changes))
		begun, err := j.unfinished.Load()
		require.NoError(t, err)
		require.Nil(t, begun)
		if others == nil {
			require.NotContains(t, machinetest.Tree(t, f.Root), "keytab")
			continue
		}
		require.Equal(t, string(keytab.Marshal(others)), read(t, f, "/etc/krb5.keytab"))
	}
}
