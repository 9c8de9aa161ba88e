package packages

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// windowsRelease writes an installer with stand-ins, which are small and start fast.
func windowsRelease(t *testing.T, version string) string {
	t.Helper()
	r := standIns(t, version, manifest.KindMSI)
	require.NoError(t, r.Make(t.Context(), t.Output()))
	return filepath.Join(r.Out, "machineadm-"+version+"-windows-amd64.msi")
}

// TestMSI installs, upgrades and removes under wine, which has no access lists: of these, the table is read back.
func TestMSI(t *testing.T) {
	t.Parallel()
	installer := map[string]string{"old": windowsRelease(t, oldVersion), "new": windowsRelease(t, "v0.2.0")}
	n := node{nodes.Boot(t, nodes.Options{
		Suite: nodes.Trixie, Layers: []nodes.Layer{nodes.Wine},
	})}
	n.sh(t, `echo "127.0.0.1 $(hostname)" >> /etc/hosts`) // wine resolves its own name
	for name, file := range installer {
		require.NoError(t, n.CopyIn(t.Context(), file, "/root/.wine/drive_c/"+name+".msi", 0o644))
	}
	n.MustExec(t, "systemd-run", "--quiet", "--setenv=HOME=/root", "wineserver", "--foreground", "--persistent")
	wine := func(want int, arguments ...string) string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		defer cancel()
		// As in testenv/wine: services inherit the output, so it goes to files.
		const script = `cd && wine "$@" >/run/out 2>&1; status=$?; cat /run/out; exit $status`
		r, err := n.Exec(ctx, append([]string{"env", "HOME=/root", "WINEDEBUG=-all", "WINEDLLOVERRIDES=mscoree,mshtml=", "sh", "-c", script, "sh"}, arguments...)...)
		require.NoError(t, err)
		assert.Equal(t, want&0xff, r.ExitCode, "%v: %s", arguments, r.Stdout)
		return r.Stdout
	}
	msi := func(want int, arguments ...string) {
		t.Helper()
		wine(want, append([]string{"msiexec", "/qn"}, arguments...)...)
	}
	path := func() string {
		t.Helper()
		return wine(0, "reg", "query", `HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Environment`, "/v", "PATH")
	}
	const at = "/root/.wine/drive_c/Program Files/machineadm/"
	msi(0, "/i", `C:\old.msi`)
	assert.Equal(t, "machineadm of "+oldVersion, n.sh(t, "cat '"+at+"machineadm.exe'"))
	assert.Equal(t, "machineadm.exe\nplugins", n.sh(t, "ls '"+at+"'"))
	assert.Equal(t, "machineadm-timesync-plugin-w32time.exe", n.sh(t, "ls '"+at+"plugins'"))
	assert.Contains(t, path(), `Program Files\machineadm`)
	n.sh(t, "echo {} > /root/.wine/drive_c/ProgramData/machineadm/choices.json")
	msi(0, "/i", `C:\new.msi`)
	assert.Equal(t, "machineadm of v0.2.0", n.sh(t, "cat '"+at+"machineadm.exe'"))
	msi(1603, "/i", `C:\old.msi`) // a downgrade
	assert.Equal(t, "machineadm of v0.2.0", n.sh(t, "cat '"+at+"machineadm.exe'"))
	msi(0, "/x", `C:\new.msi`)
	assert.False(t, n.exists(t, at+"machineadm.exe"))
	assert.NotContains(t, path(), "machineadm")
	assert.True(t, n.exists(t, "/root/.wine/drive_c/ProgramData/machineadm/choices.json"), "the removal removed the state")
}

func TestMSITables(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	info := needs.Tool(t, "msiinfo")
	file := windowsRelease(t, oldVersion)
	for table, want := range map[string]string{
		"Environment":          "path\t=-*PATH\t[~];[INSTALLDIR]\tmachineadm",
		"MsiLockPermissionsEx": "state\tSTATEDIR\tCreateFolder\tD:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)",
		"Upgrade":              "{6F0E9F5C-4A57-4C0B-8D4E-5B7A1C6F2D10}",
		"Property":             "ProductVersion\t0.1.0",
	} {
		assert.Contains(t, output(t, info, "export", file, table), want)
	}
	assert.Contains(t, output(t, info, "suminfo", file), "Created: Fri Jan  2 03:04:05 2026")
}
