package nodes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// recipeVersion is raised when the recipe changes in a way that its arguments do not show.
const recipeVersion = "1"

const debianKeyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// ubuntuKey is F6EC B376 2474 EDA9 D21B 7022 8719 20D1 991B C93C, "Ubuntu Archive Automatic Signing Key (2018)", which Debian
// has no package of. It signs all releases since 18.04.
//
//go:embed ubuntu.asc
var ubuntuKey []byte

// cloudConfig makes cloud-init use the seed directory alone and run only what a node without network, users and ssh
// can do. Module names are those that releases 22.4 to 25.1 share.
const cloudConfig = `# testenv: only the seed directory, no network, no users, no ssh.
datasource_list: [NoCloud, None]
network: {config: disabled}
preserve_hostname: false
manage_etc_hosts: false
ssh_genkeytypes: []
cloud_init_modules: [seed_random, bootcmd, write_files, set_hostname, update_hostname]
cloud_config_modules: [runcmd]
cloud_final_modules: [write_files_deferred, scripts_per_boot, scripts_user, final_message, power_state_change]
`

// basePackages is what every node has. Container runtimes and time daemons are layers.
func basePackages(suite Suite) []string {
	packages := []string{
		"systemd", "systemd-sysv", "dbus", "udev", "kmod",
		"iproute2", "netbase", "procps", "ca-certificates", "cloud-init",
	}
	if suite == Noble { // there apt is not among the packages that every system requires, and layers are not to be had
		packages = append(packages, "apt", "nftables")
	}
	return packages
}

// aptOptions and dpkgOptions keep the system small and the build fast; unsafe-io is safe because a build that did not
// end is thrown away.
func aptOptions() []string { return []string{`APT::Install-Recommends "false"`} }

func dpkgOptions() []string {
	return []string{
		"force-unsafe-io", "path-exclude=/usr/share/man/*", "path-exclude=/usr/share/doc/*", "path-exclude=/usr/share/locale/*",
	}
}

// rootfs is the base system of a suite: minbase and basePackages, without any trace of the machine that built it.
func rootfs(suite Suite) artefact {
	recipe := slices.Concat([]string{recipeVersion, runtime.GOARCH, string(suite), cloudConfig}, basePackages(suite), aptOptions(), dpkgOptions())
	return artefact{
		what: fmt.Sprintf("the %s root file system", suite),
		key:  keyOf(string(suite), recipe...),
		tree: "rootfs",
		build: func(ctx context.Context, site buildSite) error {
			return bootstrap(ctx, suite, site)
		},
	}
}

func bootstrap(ctx context.Context, suite Suite, site buildSite) error {
	archive, err := readArchive(ctx, suite)
	if err != nil {
		return err
	}
	scratch := filepath.Join(site.dir, "scratch")
	if err := os.Mkdir(scratch, 0o755); err != nil {
		return err
	}
	aptConf := filepath.Join(scratch, "apt.conf")
	if err := os.WriteFile(aptConf, []byte(archive.aptConf), 0o600); err != nil {
		return err
	}
	keyring := debianKeyring
	if suite == Noble {
		keyring = filepath.Join(scratch, "ubuntu.asc")
		if err := os.WriteFile(keyring, ubuntuKey, 0o644); err != nil { //nolint:gosec // read by apt's own user
			return err
		}
	}
	root := filepath.Join(site.dir, "rootfs")
	argv := []string{
		"mmdebstrap", "--mode=root", "--format=directory", "--variant=minbase", "--keyring=" + keyring,
		"--include=" + strings.Join(basePackages(suite), ","), "--aptopt=" + aptConf,
	}
	for _, o := range aptOptions() {
		argv = append(argv, "--aptopt="+o)
	}
	for _, o := range dpkgOptions() {
		argv = append(argv, "--dpkgopt="+o)
	}
	argv = append(argv, string(suite), root)
	if archive.sources != "" {
		// They come on stdin: a mirror's URI may hold a password, which argv would show to everyone.
		argv = append(argv, "-")
	}
	if err := runIsolated(ctx, site, strings.NewReader(archive.sources), append(archive.env, "TMPDIR="+scratch), argv...); err != nil {
		return err
	}
	return errors.Join(makeNeutral(root), os.RemoveAll(scratch))
}

// makeNeutral turns a fresh system into one that any number of nodes can start from.
func makeNeutral(root string) error {
	for _, trace := range []string{
		"etc/resolv.conf", "etc/fstab", "etc/hostname", "etc/apt/sources.list", "etc/apt/apt.conf.d/99mmdebstrap",
		"var/lib/dbus/machine-id",
	} {
		if err := os.Remove(filepath.Join(root, trace)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// Empty, not missing: each node gets an identity of its own at its first boot, and systemd-firstboot asks nothing.
	files := map[string]string{
		"etc/machine-id":                       "",
		"etc/hosts":                            "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n",
		disabledFlag:                           "",
		"etc/cloud/cloud.cfg.d/90_testenv.cfg": cloudConfig,
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	// No archive can be reached from a node; the timers would only add noise.
	for _, unit := range []string{"apt-daily.timer", "apt-daily-upgrade.timer"} {
		if err := os.Symlink("/dev/null", filepath.Join(root, "etc/systemd/system", unit)); err != nil {
			return err
		}
	}
	return nil
}
