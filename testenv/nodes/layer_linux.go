package nodes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// installLayer installs packages on a mounted overlay, in the builder's own mount namespace. Arguments: overlay options,
// mount point, directory with sources.list and apt.conf, packages. What only the build needs is mounted over /run and
// so never becomes part of the layer.
const installLayer = `set -eu
options=$1 root=$2 conf=$3
shift 3
mount -t overlay overlay -o "$options" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/run"
cp -- "$conf/sources.list" "$conf/apt.conf" "$root/run/"
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 0755 "$root/usr/sbin/policy-rc.d"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
apt() {
	chroot "$root" env APT_CONFIG=/run/apt.conf apt-get -q -y -o Dir::Etc::SourceList=/run/sources.list \
		-o Dpkg::Options::=--force-unsafe-io "$@"
}
apt update
apt install --no-install-recommends -- "$@"
apt clean
find "$root/var/lib/apt/lists" -mindepth 1 -delete
rm -f -- "$root/usr/sbin/policy-rc.d" "$root/etc/resolv.conf"
`

// runScript runs a script in a mounted overlay. Arguments: overlay options, mount point, script. The network namespace is
// left by its last process.
const runScript = `set -eu
mount -t overlay overlay -o "$1" "$2"
mount -t proc proc "$2/proc"
mount --rbind /dev "$2/dev"
mount -t tmpfs tmpfs "$2/run"
exec unshare --net chroot "$2" sh -euc "$3"
`

// overlayLayer contains the changes of installing the packages, or of the script, on top of the lower directories (topmost
// first), which belowKey stands for.
func overlayLayer(suite Suite, belowKey string, lowers []string, l Layer) artefact {
	what, inputs, fill := strings.Join(l.Packages, " "), append([]string{belowKey, installLayer}, l.Packages...), install
	if l.Script != "" {
		what, inputs, fill = "of a script", []string{belowKey, runScript, l.Script}, derive
	}
	return artefact{
		what:    fmt.Sprintf("the %s layer %s", suite, what),
		key:     keyOf(string(suite)+"-layer", inputs...),
		tree:    "upper",
		offline: l.Script != "",
		build: func(ctx context.Context, site buildSite) error {
			o, err := newOverlay(site.dir, lowers)
			if err != nil {
				return err
			}
			if err := fill(ctx, suite, site, o, l); err != nil {
				return err
			}
			return errors.Join(os.RemoveAll(o.work), os.RemoveAll(o.root))
		},
	}
}

func derive(ctx context.Context, _ Suite, site buildSite, o overlay, l Layer) error {
	env := []string{"PATH=" + nodePath, "HOME=/root", "LANG=C.UTF-8"}
	return runIsolated(ctx, site, nil, env, "sh", "-c", runScript, "sh", o.options(), o.root, l.Script)
}

func install(ctx context.Context, suite Suite, site buildSite, o overlay, l Layer) error {
	archive, err := readArchive(ctx, suite)
	if err != nil {
		return err
	}
	scratch := filepath.Join(site.dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	for name, content := range map[string]string{"sources.list": archive.sources, "apt.conf": archive.aptConf} {
		if err := os.WriteFile(filepath.Join(scratch, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	argv := append([]string{"sh", "-c", installLayer, "sh", o.options(), o.root, scratch}, l.Packages...)
	if err := runIsolated(ctx, site, nil, archive.env, argv...); err != nil {
		return err
	}
	return os.RemoveAll(scratch)
}
