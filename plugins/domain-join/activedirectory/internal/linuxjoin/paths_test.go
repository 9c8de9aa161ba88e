//go:build linux

package linuxjoin

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/plugins/domain-join/activedirectory/internal/settings"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestKeytabOutside: the plan refuses a keytab that cannot be written, before the account gets another password.
func TestKeytabOutside(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/usr/x.keytab", "/bin/x.keytab", "/srv/k/x.keytab", "/var/lib/machineadm/x", "/srv/new"} {
		f := machinetest.New(t)
		for _, dir := range []string{"usr/bin", "srv", "etc/machineadm"} {
			require.NoError(t, os.MkdirAll(filepath.Join(f.Root, dir), 0o755)) //nolint:gosec // like any machine
		}
		for name, target := range map[string]string{"bin": "usr/bin", "srv/k": "/etc/machineadm", "srv/new": "/run/machineadm/new"} {
			require.NoError(t, os.Symlink(target, filepath.Join(f.Root, name)))
		}
		j := of(f, func(s *settings.Settings) { s.Keytab.Path = path })
		_, err := Plan(offline(t), f.Machine, j.s)
		e := pluginv1.AsError(err)
		require.NotNil(t, e, path)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code, path)
		assert.True(t, e.Final, path)
		require.Len(t, e.Violations, 1, path)
		assert.Equal(t, "spec.keytab.path", e.Violations[0].Field)
		assert.Contains(t, e.Violations[0].Hint, "namei -l")
	}
}
