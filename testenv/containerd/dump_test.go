package containerd_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// experiment is a set of files that `containerd config dump` reads. Its output is kept for each version in
// testdata/dump-VERSION.txt: the exit status, the settings that are not the defaults, and what it says on stderr.
type experiment struct {
	name string
	// files by name in a directory of their own, by which DIR is replaced; the main one is config.toml.
	files map[string]string
}

const main = "config.toml"

// A table of the CRI plugin in a file of version 2, and in one of version 3.
const (
	cri2     = `[plugins."io.containerd.grpc.v1.cri"]` + "\n"
	cni2     = `[plugins."io.containerd.grpc.v1.cri".cni]` + "\n"
	images3  = `[plugins."io.containerd.cri.v1.images"]` + "\n"
	pinned3  = `[plugins."io.containerd.cri.v1.images".pinned_images]` + "\n"
	runtime3 = `[plugins."io.containerd.cri.v1.runtime"]` + "\n"
	cni3     = `[plugins."io.containerd.cri.v1.runtime".cni]` + "\n"
	v2       = "version = 2\n"
	v3       = "version = 3\n"
	imports  = "imports = [\"DIR/conf.d/*.toml\"]\n"
)

func experiments(t *testing.T) []experiment {
	t.Helper()
	full2 := cri2 + "sandbox_image = 'r.test/pause:1'\n" + cni2 + "bin_dir = '/main/bin'\nconf_dir = '/main/net.d'\n"
	full3 := pinned3 + "sandbox = 'r.test/pause:1'\n" + cni3 + "bin_dir = '/main/bin'\nconf_dir = '/main/net.d'\n"
	partial2 := cri2 + "max_concurrent_downloads = 7\n" + cni2 + "bin_dir = '/drop-in/bin'\n"
	partial3 := images3 + "max_concurrent_downloads = 7\n" + cni3 + "bin_dir = '/drop-in/bin'\n"
	const unknown = "typo = 1\n[debug]\ntypo = 1\n[typo_table]\na = 1\n[plugins.'io.containerd.typo.v1.x']\na = 1\n"
	one := func(name, text string) experiment { return experiment{name, map[string]string{main: text}} }
	dropIn := func(name, text, dropIn string) experiment {
		return experiment{name, map[string]string{main: text, "conf.d/10.toml": dropIn}}
	}
	return []experiment{
		{"no-file", nil},
		one("empty-file", ""),
		one("every-setting-v2", file(t, 2)),
		one("every-setting-v3", file(t, 3, "cni bin dir")),
		one("every-setting-v4", file(t, 4, "cni bin dir")),
		one("cni-bin-dir-v3", v3+cni3+"bin_dir = '/one'\n"),
		one("cni-bin-dir-and-dirs-v3", v3+cni3+"bin_dir = '/one'\nbin_dirs = ['/two']\n"),

		dropIn("imports-partial-v2", v2+imports+full2, v2+partial2),
		dropIn("imports-partial-v3", v3+imports+full3, v3+partial3),
		dropIn("imports-partial-v3-below-v2", v2+imports+full2, v3+partial3),
		dropIn("imports-partial-v2-below-v3", v3+imports+full3, v2+partial2),
		dropIn("imports-without-version", v2+imports+full2, partial2),
		dropIn("imports-v3-below-no-version", imports, v3+partial3),
		dropIn("imports-relative", v2+"imports = ['conf.d/10.toml']\n"+full2, v2+partial2),
		dropIn("imports-relative-glob", v2+"imports = ['conf.d/*.toml']\n"+full2, v2+partial2),
		one("imports-missing-file", v2+"imports = ['DIR/missing.toml']\n"),
		one("imports-glob-without-match", v2+imports+full2),
		{"imports-two", map[string]string{
			main: v2 + imports + full2, "conf.d/10.toml": v2 + cri2 + "max_concurrent_downloads = 10\nsandbox_image = 'r.test/pause:10'\n",
			"conf.d/20.toml": v2 + cri2 + "max_concurrent_downloads = 20\n",
		}},
		dropIn("no-imports", v2+full2, v2+partial2),

		dropIn("imports-zero-over-value-v2", v2+imports+"oom_score = -5\n"+cri2+"enable_cdi = true\nmax_concurrent_downloads = 7\n",
			v2+"oom_score = 0\n"+cri2+"enable_cdi = false\nmax_concurrent_downloads = 0\n"),
		dropIn("imports-zero-over-value-v3", v3+imports+"oom_score = -5\n"+images3+"max_concurrent_downloads = 7\n"+runtime3+"enable_cdi = true\n",
			v3+"oom_score = 0\n"+images3+"max_concurrent_downloads = 0\n"+runtime3+"enable_cdi = false\n"),
		dropIn("imports-list-top", v2+imports+"disabled_plugins = ['io.containerd.one.v1.x']\n", v2+"disabled_plugins = ['io.containerd.two.v1.x']\n"),
		dropIn("imports-list-v2", v2+imports+cri2+"cdi_spec_dirs = ['/one']\n", v2+cri2+"cdi_spec_dirs = ['/two']\n"),
		dropIn("imports-list-v3", v3+imports+runtime3+"cdi_spec_dirs = ['/one']\n", v3+runtime3+"cdi_spec_dirs = ['/two']\n"),

		one("partial-runc-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"),
		one("partial-runc-v3", v3+"[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"),

		one("unknown-keys-v2", v2+unknown+cri2+"typo = 1\n"+cni2+"typo = 1\n"),
		one("unknown-keys-v3", v3+unknown+images3+"typo = 1\n"+pinned3+"typo = 'x'\n"+cni3+"typo = 1\n"),
		one("old-table-v3", v3+cri2+"sandbox_image = 'r.test/pause:1'\n"),
		one("new-table-v2", v2+pinned3+"sandbox = 'r.test/pause:1'\n"),

		one("wrong-type-v2", v2+cri2+"max_concurrent_downloads = 'three'\n"),
		one("wrong-type-v3", v3+images3+"max_concurrent_downloads = 'three'\n"),
		one("wrong-type-sandbox-v2", v2+cri2+"sandbox_image = 3\n"),
		one("wrong-type-bin-dir-v2", v2+cni2+"bin_dir = ['/a']\n"),
		one("wrong-type-top", v2+"oom_score = 'x'\n"),
		one("wrong-type-option-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nSystemdCgroup = 'yes'\n"),
		one("unknown-option-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\nTypo = true\nSystemdCgroup = true\n"),

		one("no-version", "oom_score = -5\n"),
		one("version-0", "version = 0\n"),
		one("version-1", "version = 1\n"),
		one("version-5", "version = 5\noom_score = -5\n"),
		one("syntax-error", "version = \n"),
		one("mirrors-and-config-path-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/etc/r.d'\n"+
			"[plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.'m.test']\nendpoint = ['https://e.test']\n"),
	}
}

// dumps runs the program in the node with every experiment.
func dumps(t *testing.T, d *containerd.Daemon) {
	kept := readSections(t, "dump-"+string(d.Version)+".txt")
	for _, e := range experiments(t) {
		t.Run(e.name, func(t *testing.T) {
			dir := "/run/experiments/" + e.name
			for name, text := range e.files {
				d.Write(t, dir+"/"+name, strings.ReplaceAll(text, "DIR", dir))
			}
			r := d.Dump(t, dir+"/"+main)
			answer := fmt.Sprintf("exit status %d\n", r.ExitCode)
			if r.ExitCode == 0 {
				answer += differences(t, d.Version, neutral(r.Stdout), defaults(t, d.Version))
			}
			if text := said(r.Stderr); text != "" {
				answer += "stderr: " + strings.ReplaceAll(text, "\n", "\nstderr: ") + "\n"
			}
			kept.check(t, e.name, strings.ReplaceAll(answer, dir, "DIR"))
		})
	}
}
