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

// overlayLayer contains the changes of installing the packages, or of the script if there is one, on top of the lower directories
// (topmost first). belowKey is the key of the topmost.
func overlayLayer(suite Suite, belowKey string, lowers, packages []string, script string) artefact {
	what, inputs := strings.Join(packages, " "), append([]string{belowKey, installLayer}, packages...)
	fill := func(ctx context.Context, site buildSite, o overlay) error {
		return install(ctx, suite, site, o, packages)
	}
	if script != "" {
		what, inputs = "of a script", []string{belowKey, runScript, script}
		fill = func(ctx context.Context, site buildSite, o overlay) error { return derive(ctx, site, o, script) }
	}
	return artefact{
		what:    fmt.Sprintf("the %s layer %s", suite, what),
		key:     keyOf(string(suite)+"-layer", inputs...),
		tree:    "upper",
		offline: script != "",
		build: func(ctx context.Context, site buildSite) error {
			o, err := newOverlay(site.dir, lowers)
			if err != nil {
				return err
			}
			if err := fill(ctx, site, o); err != nil {
				return err
			}
			return errors.Join(os.RemoveAll(o.work), os.RemoveAll(o.root))
		},
	}
}

func derive(ctx context.Context, site buildSite, o overlay, script string) error {
	env := []string{"PATH=" + nodePath, "HOME=/root", "LANG=C.UTF-8"}
	return runIsolated(ctx, site, nil, env, "sh", "-c", runScript, "sh", o.options(), o.root, script)
}

func install(ctx context.Context, suite Suite, site buildSite, o overlay, packages []string) error {
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
	argv := append([]string{"sh", "-c", installLayer, "sh", o.options(), o.root, scratch}, packages...)
	if err := runIsolated(ctx, site, nil, archive.env, argv...); err != nil {
		return err
	}
	return os.RemoveAll(scratch)
}
