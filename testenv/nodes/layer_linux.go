package nodes

import (
	"context"
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

// overlayLayer contains the changes of installing the packages on top of the lower directories (topmost first), which
// belowKey stands for.
func overlayLayer(suite Suite, belowKey string, lowers []string, l Layer) artefact {
	return artefact{
		what: fmt.Sprintf("the %s layer %s", suite, strings.Join(l.Packages, " ")),
		key:  keyOf(string(suite)+"-layer", append([]string{belowKey, installLayer}, l.Packages...)...),
		tree: "upper",
		build: func(ctx context.Context, site buildSite) error {
			return install(ctx, suite, site, lowers, l.Packages)
		},
	}
}

func install(ctx context.Context, suite Suite, site buildSite, lowers, packages []string) error {
	archive, err := readArchive(ctx, suite)
	if err != nil {
		return err
	}
	o, err := newOverlay(site.dir, lowers)
	if err != nil {
		return err
	}
	scratch := filepath.Join(site.dir, "scratch")
	if err := os.Mkdir(scratch, 0o700); err != nil {
		return err
	}
	for name, content := range map[string]string{"sources.list": archive.sourcesLine, "apt.conf": archive.aptConf} {
		if err := os.WriteFile(filepath.Join(scratch, name), []byte(content), 0o600); err != nil {
			return err
		}
	}
	argv := append([]string{"sh", "-c", installLayer, "sh", o.options(), o.root, scratch}, packages...)
	if err := runIsolated(ctx, site, nil, archive.env, argv...); err != nil {
		return err
	}
	for _, used := range []string{scratch, o.work, o.root} {
		if err := os.RemoveAll(used); err != nil {
			return err
		}
	}
	return nil
}
