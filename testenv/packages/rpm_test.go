package packages

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/tools"
)

// stub is a package of a base system that is not there: what packages of programs depend on.
func stub(t *testing.T, kind string) string {
	t.Helper()
	nfpm := tools.For(t, "nfpm")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "nfpm.json"), []byte(`{"name": "base", "arch": "amd64", "version": "1.0.0", "provides": ["/bin/sh", "sh"]}`), 0o600)
	out, err := exec.CommandContext(t.Context(), nfpm, "package", "--config", filepath.Join(dir, "nfpm.json"), "--packager", kind, "--target", dir).CombinedOutput()
	require.NoError(t, err, "%s", out)
	found, err := filepath.Glob(filepath.Join(dir, "base*"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestRPM uses rpm and dnf, and a repository with a signature that zypper checks as well.
func TestRPM(t *testing.T) {
	t.Parallel()
	all := strings.Join(packages(), " ")
	n := bootWith(t, manifest.KindRPM, nodes.Options{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.PackageManagers}})
	require.NoError(t, n.CopyIn(t.Context(), stub(t, "rpm"), "/srv/base.rpm", 0o644))
	n.sh(t, "rpm --initdb; rpm --install --force-debian /srv/base.rpm")
	n.sh(t, "rpm --install --force-debian /srv/machineadm-*0.1.0*.rpm")
	assert.Equal(t, "static", n.sh(t, "systemctl is-enabled machineadm-resume.service"))
	assert.Equal(t, "disabled", n.sh(t, "systemctl is-enabled machineadm-firstboot.service || true"))
	n.sh(t, "systemctl enable machineadm-firstboot.service")
	n.put(t, "/etc/machineadm/node.yaml", sysctl)
	n.sh(t, "machineadm apply --path /etc/machineadm/node.yaml")

	repository(t, n)
	n.sh(t, "dnf --assumeyes --repofrompath=r,file:///srv/r --setopt=r.gpgkey=file:///srv/key --setopt=r.repo_gpgcheck=1 --setopt=r.gpgcheck=0 --repo=r upgrade "+all)
	assert.Equal(t, "machineadm-0.2.0~rc.1-1.x86_64", n.sh(t, "rpm --query machineadm"))
	assert.Equal(t, "enabled", n.sh(t, "systemctl is-enabled machineadm-firstboot.service"), "the scripts of the old release ran as for an erasure")
	n.sh(t, "rpm --verify "+all)
	n.sh(t, "machineadm plan --path /etc/machineadm/node.yaml")
	n.sh(t, "rpm --upgrade --oldpackage --force-debian /srv/machineadm-*0.1.0*.rpm")

	n.sh(t, "dnf --assumeyes remove "+all)
	assert.False(t, n.exists(t, "/usr/bin/machineadm"))
	assert.False(t, n.exists(t, "/etc/systemd/system/multi-user.target.wants/machineadm-firstboot.service"))
	assert.True(t, n.exists(t, stateDir+"/choices.json"), "an erasure keeps the state")

	const zypper = "zypper --non-interactive --gpg-auto-import-keys "
	n.sh(t, zypper+"addrepo --gpgcheck-allow-unsigned-package file:///srv/r r && "+zypper+"install "+strings.Join(packages()[1:], " "))
	n.sh(t, "machineadm plan --path /etc/machineadm/node.yaml")
	n.sh(t, "rpm --dbpath /var/lib/rpm --erase "+all)
	// A changed index is refused.
	n.sh(t, "echo >> /srv/r/repodata/repomd.xml")
	got, err := n.Exec(t.Context(), "sh", "-c", "dnf clean all; dnf --assumeyes --repofrompath=r,file:///srv/r --setopt=r.gpgkey=file:///srv/key --setopt=r.repo_gpgcheck=1 --setopt=r.gpgcheck=0 --repo=r install machineadm")
	require.NoError(t, err)
	assert.NotZero(t, got.ExitCode, "%s%s", got.Stdout, got.Stderr)
	assert.False(t, n.exists(t, "/usr/bin/machineadm"))
}

// repository makes /srv/r, whose index is signed by a new key, /srv/key.
func repository(t *testing.T, n node) {
	t.Helper()
	n.sh(t, `mkdir /srv/r && cp /srv/machineadm*0.2.0*.rpm /srv/r && createrepo_c --quiet /srv/r
export GNUPGHOME=/root/keys && mkdir -m 700 $GNUPGHOME
gpg --batch --quiet --passphrase '' --quick-generate-key test@example.com ed25519 sign never
gpg --batch --export --armor > /srv/key && cp /srv/key /srv/r/repodata/repomd.xml.key
gpg --batch --detach-sign --armor /srv/r/repodata/repomd.xml`)
}

// TestPacman installs, upgrades and removes with pacman.
func TestPacman(t *testing.T) {
	t.Parallel()
	n := bootWith(t, manifest.KindArchLinux, nodes.Options{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.PackageManagers}})
	n.put(t, "/etc/machineadm/node.yaml", sysctl)
	for _, version := range []string{"0.1.0", "0.2.0", "0.1.0"} {
		n.sh(t, "pacman --upgrade --noconfirm /srv/machineadm-*"+version+"*.zst")
		assert.Contains(t, n.sh(t, "pacman --query machineadm"), version)
		n.sh(t, "machineadm apply --path /etc/machineadm/node.yaml")
	}
	n.sh(t, "systemctl enable machineadm-firstboot.service")
	n.sh(t, "pacman --remove --noconfirm "+strings.Join(packages(), " "))
	assert.False(t, n.exists(t, "/usr/bin/machineadm"))
	assert.False(t, n.exists(t, "/etc/systemd/system/multi-user.target.wants/machineadm-firstboot.service"))
	assert.True(t, n.exists(t, stateDir+"/choices.json"))
}

// TestAPK reads a package back, because there is no apk here: the files and the scripts, which busybox's sh runs.
func TestAPK(t *testing.T) {
	t.Parallel()
	n := bootWith(t, manifest.KindAPK, nodes.Options{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.PackageManagers}})
	n.sh(t, "cd / && for p in /srv/machineadm*_0.1.0_x86_64.apk; do tar -xzf $p --ignore-zeros --exclude .PKGINFO; done")
	assert.Equal(t, "machineadm\n0.1.0\nx86_64", n.sh(t, "tar -xzOf /srv/machineadm_0.1.0_x86_64.apk --ignore-zeros .PKGINFO | sed -n 's/^\\(pkgname\\|pkgver\\|arch\\) = //p'"))
	n.put(t, "/etc/machineadm/node.yaml", sysctl)
	got, err := n.Exec(t.Context(), "machineadm", "plan", "--path", "/etc/machineadm/node.yaml")
	require.NoError(t, err)
	assert.Equal(t, report.ExitDiffers, got.ExitCode, got.Stderr)
	for _, script := range []string{".post-install", ".post-upgrade", ".pre-deinstall", ".post-deinstall"} {
		for range 2 {
			n.MustExec(t, "busybox", "sh", "-e", "/"+script, "0.1.0")
		}
	}
	n.sh(t, "mkdir -p /root/chroot/bin && cp /bin/busybox /root/chroot/bin/sh && cp /.post-* /.pre-* /root/chroot && ldd /bin/busybox | grep -o '/[^ ]*' | xargs -I F cp --parents F /root/chroot")
	for _, script := range []string{".post-install", ".pre-deinstall", ".post-deinstall"} {
		n.MustExec(t, "chroot", "/root/chroot", "/bin/sh", "-e", "/"+script, "0.1.0") // a system without systemd
	}
	assert.NotContains(t, strings.Fields(n.sh(t, "ls /root/chroot")), "var")
}
