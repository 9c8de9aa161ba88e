package packages

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// TestSysext merges the content of the images into /usr of a node: a container has no loop device for the images themselves.
func TestSysext(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	needs.Tool(t, "mksquashfs")
	dirs := map[string]string{"old": releaseOf(t, oldVersion, manifest.KindSysext), "new": releaseOf(t, newVersion, manifest.KindSysext)}
	n := node{nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: func(root string) error {
		for name, dir := range dirs {
			images, err := filepath.Glob(filepath.Join(dir, "*.raw"))
			if err == nil {
				err = exec.CommandContext(t.Context(), "unsquashfs", "-quiet", "-no-progress", "-dest", filepath.Join(root, "srv", name), images[0]).Run() //nolint:gosec // ours
			}
			if err != nil {
				return err
			}
		}
		return nil
	}})}
	assert.Equal(t, "0 root 755", n.sh(t, "find /srv/old -printf '%U %u %#m\\n' | sort -u | grep -v 644 | grep -v 777 | sed 's/ 0/ /'"))
	n.sh(t, "mkdir -p /var/lib/extensions && ln -s /srv/old /var/lib/extensions/machineadm && systemd-sysext merge")
	n.put(t, "/etc/machineadm/node.yaml", sysctl)
	got, err := n.Exec(t.Context(), "machineadm", "plan", "--path", "/etc/machineadm/node.yaml")
	require.NoError(t, err)
	assert.Equal(t, report.ExitDiffers, got.ExitCode, got.Stderr)
	before := n.sh(t, "sha256sum < /usr/bin/machineadm")
	n.sh(t, "ln -sfT /srv/new /var/lib/extensions/machineadm && systemd-sysext refresh")
	assert.NotEqual(t, before, n.sh(t, "sha256sum < /usr/bin/machineadm"))
	n.sh(t, "machineadm apply --path /etc/machineadm/node.yaml")

	// The same plugin from an archive: /usr cannot be written now.
	n.sh(t, "mkdir -p /opt/machineadm/plugins && cp "+libexec+plugin+" /opt/machineadm/plugins")
	got, err = n.Exec(t.Context(), "machineadm", "plan", "--path", "/etc/machineadm/node.yaml")
	require.NoError(t, err)
	assert.Equal(t, report.ExitPrecondition, got.ExitCode)
	assert.Contains(t, got.Stderr, "installed more than once")
	assert.Contains(t, got.Stderr, "package machineadm-plugins")
	n.sh(t, "systemd-sysext unmerge")
	assert.False(t, n.exists(t, "/usr/bin/machineadm"))
}

// TestSysextImage mounts the images themselves, in a virtual machine.
func TestSysextImage(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.VM)
	n := node{nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, VM: true})}
	previous := ""
	for _, version := range []string{oldVersion, newVersion} {
		images, err := filepath.Glob(filepath.Join(releaseOf(t, version, manifest.KindSysext), "*.raw"))
		require.NoError(t, err)
		require.NoError(t, n.CopyIn(t.Context(), images[0], "/var/lib/extensions/machineadm.raw", 0o644))
		n.sh(t, "systemd-sysext refresh")
		digest := n.sh(t, "sha256sum < /usr/bin/machineadm")
		assert.NotEqual(t, previous, digest)
		previous = digest
		n.put(t, "/etc/machineadm/node.yaml", sysctl)
		n.sh(t, "machineadm apply --path /etc/machineadm/node.yaml")
	}
	n.sh(t, "systemctl enable systemd-sysext.service")
	n.put(t, "/run/node.yaml", sysctl+noop("before", "touch: [/var/before], reboot: BeforeNext")+noop("after", "touch: [/var/after]"))
	n.sh(t, "systemctl mask --runtime reboot.target systemd-reboot.service")
	n.sh(t, "machineadm apply --reboot --path /run/node.yaml || true")
	require.True(t, n.exists(t, waiting), n.sh(t, "machineadm status || true"))
	n.sh(t, "systemctl unmask --runtime reboot.target systemd-reboot.service")
	require.NoError(t, n.Reboot(t.Context()))
	assert.Equal(t, previous, n.sh(t, "sha256sum < /usr/bin/machineadm"), "after a reboot")
	assert.True(t, n.exists(t, "/var/after"), n.sh(t, "systemctl status machineadm-resume || true; journalctl --no-pager -u machineadm-resume"))
	assert.False(t, n.exists(t, waiting))
}
