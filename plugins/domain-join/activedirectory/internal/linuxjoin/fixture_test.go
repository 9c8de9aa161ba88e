//go:build linux

package linuxjoin

import (
	"bytes"
	"context"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/kerberos"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/keytab"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares with a file of testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile("testdata/"+name, got, 0o644)) //nolint:gosec // of the checkout
	}
	want, err := os.ReadFile("testdata/" + name)
	require.NoError(t, err)
	require.Equal(t, string(want), string(got))
}

// of is the membership of the machine NODE, with settings that change completes.
func of(f *machinetest.Fixture, change func(*settings.Settings)) *join {
	s := settings.Settings{
		Domain: "ad.example.test", Realm: "AD.EXAMPLE.TEST", Computer: "NODE", FQDN: "node.ad.example.test",
		Services:        []string{"HOST/NODE", "HOST/node.ad.example.test", "HTTP/www.example.test"},
		EncryptionTypes: []int32{18, 17},
		Keytab:          settings.Keytab{Path: "/etc/krb5.keytab", Mode: 0o600, Owner: sdk.Owner{UID: os.Getuid(), GID: os.Getgid()}},
		Krb5Conf:        true,
	}
	if change != nil {
		change(&s)
	}
	return &join{m: f.Machine, s: s, unfinished: sdk.Intent[newPassword]{State: f.Machine.State, Name: "password"}}
}

func absent(s *settings.Settings) { s.Absent = true }

// do applies changes, and returns their IDs.
func do(t *testing.T, changes []sdk.Change) string {
	t.Helper()
	var ids []string
	for _, c := range changes {
		ids = append(ids, c.ID)
		require.NoError(t, c.Do(t.Context(), quiet{}), c.ID)
	}
	return strings.Join(ids, " ")
}

// quiet discards progress.
type quiet struct{}

func (quiet) Report(string)            {}
func (quiet) Warn(string, string)      {}
func (quiet) RequestReboot(sdk.Reboot) {}

// files plans the files alone, applies them, and requires that nothing is left to do.
func (j *join) files(t *testing.T) string {
	t.Helper()
	var result sdk.Plan
	require.NoError(t, j.planFiles(t.Context(), &result))
	ids := do(t, result.Changes)
	var again sdk.Plan
	require.NoError(t, j.planFiles(t.Context(), &again))
	require.Empty(t, again.Changes)
	return ids
}

func read(t *testing.T, f *machinetest.Fixture, path string) string {
	t.Helper()
	data, err := f.Machine.FS.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// offline is a context in which no network is reached.
func offline(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func key(etype int32, fill byte) kerberos.Key {
	return kerberos.Key{Type: etype, Value: bytes.Repeat([]byte{fill}, 32)}
}

func entry(principal string, version uint32, k kerberos.Key) keytab.Entry {
	return keytab.New(principal, version, time.Unix(9, 0), k)
}
