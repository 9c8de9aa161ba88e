package containerruntime

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/containerd"
)

// small is a document of the settings that every node has.
const small = `  cgroupDriver: systemd
  sandboxImage: registry.test/pause:3.10
  snapshotter: native
  maxConcurrentDownloads: 7
  logLevel: debug
  metricsAddress: 127.0.0.1:1338
  oomScore: -900
`

func smallDump() map[string]string {
	return map[string]string{
		"cgroup": "true", "runtimeType": `"io.containerd.runc.v2"`, "sandbox": `"registry.test/pause:3.10"`,
		"snapshotter": `"native"`, "downloads": "7", "log": `"debug"`, "metrics": `"127.0.0.1:1338"`, "oom": "-900",
	}
}

// byHand is what an administrator could have written, with unknown keys and imports.
const byHand = `# by hand: ask before you change it
version = 2
imports = ["/etc/containerd/site.d/*.toml"] # the site's

oom_score = -500

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.test/pause:3.8" # pinned
  max_container_log_line_size = 1000
  [plugins."io.containerd.grpc.v1.cri".cni]
    conf_dir = "/etc/cni/by-hand.d"
[plugins."io.containerd.unknown.v1.thing"]
  key = 'kept'
`

const site = "version = 2\n[plugins.'io.containerd.gc.v1.scheduler']\nstartup_delay = '200ms'\n"

// TestConfigure applies one document to every kind of existing configuration of every version.
//
//machineadm:core
func TestConfigure(t *testing.T) {
	t.Parallel()
	for _, v := range containerd.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			n := start(t, v)
			shipped := n.Bash(t, "cat "+containerd.Config+" 2>/dev/null").Stdout
			defaults := n.MustExec(t, "containerd", "config", "default").Stdout
			for _, present := range []struct {
				name  string
				files map[string]string
			}{
				{"shipped", map[string]string{containerd.Config: shipped}},
				{"by hand", map[string]string{containerd.Config: byHand, "/etc/containerd/site.d/10.toml": site}},
				{"default", map[string]string{containerd.Config: defaults}},
				{"empty", map[string]string{containerd.Config: ""}},
				{"absent", nil},
				{"docker", map[string]string{containerd.Config: "disabled_plugins = []\n#root = '/var/lib/containerd'\n"}},
			} {
				t.Run(present.name, func(t *testing.T) {
					n.reset(t, present.files)
					n.apply(t, small)
					n.expect(t, v, smallDump())
					if present.name == "by hand" {
						n.expect(t, v, map[string]string{"confDir": `"/etc/cni/by-hand.d"`})
						for _, kept := range []string{"# by hand: ask before you change it", "# the site's", "key = 'kept'", "# pinned", "max_container_log_line_size = 1000"} {
							if !strings.Contains(n.files(t), kept) {
								t.Errorf("%q was lost", kept)
							}
						}
						if got := at(t, n.dumped(t), "plugins", "io.containerd.gc.v1.scheduler", "startup_delay"); got != `"200ms"` {
							t.Errorf("an import is lost: %s", got)
						}
					}
				})
			}
			t.Run("CRI turned off", func(t *testing.T) {
				n.Write(t, containerd.Config, "disabled_plugins = ['cri']\n")
				n.MustExec(t, "sh", "-c", "rm -rf /etc/containerd/conf.d; systemctl restart containerd")
				n.apply(t, small)
				n.expect(t, v, smallDump())
			})
			t.Run("broken patch", n.brokenPatch)
		})
	}
}

// brokenPatch is refused by the daemon's own checker or, when only a start shows it, rolled back.
func (n node) brokenPatch(t *testing.T) {
	n.reset(t, nil)
	n.apply(t, small)
	plugin, key := `io.containerd.cri.v1.images`, "stats_collect_period"
	runtime := `io.containerd.cri.v1.runtime`
	if n.Version.Packaged() {
		plugin, runtime = `io.containerd.grpc.v1.cri`, `io.containerd.grpc.v1.cri`
	}
	patch := func(text string) string {
		return small + "  providerConfig:\n    patches:\n    - |\n      " + strings.ReplaceAll(text, "\n", "\n      ") + "\n"
	}
	n.refused(t, patch("[plugins.'"+plugin+"']\nno_such_key = 1"), report.ExitPrecondition, "no_such_key", "spec.providerConfig.patches")
	n.refused(t, patch("[plugins.'"+plugin+"']\n"+key+" = 'three'"), report.ExitUsage, "spec.providerConfig.patches[0]", "write it in digits")
	n.refused(t, patch("[plugins.'"+runtime+"'.containerd]\ndefault_runtime_name = 'missing'"), report.ExitPrecondition,
		"is none of the runtimes", "spec.providerConfig.patches")
	// config dump accepts it and the daemon does not.
	n.refused(t, patch("[grpc]\naddress = '/dev/null/x.sock'"), report.ExitPrecondition, "the old configuration was restored, and containerd.service runs with it")
	if n.Version == containerd.V17 { // it starts, without CRI
		n.refused(t, small+"  providerConfig:\n    patches: [\"[plugins.'"+runtime+"'.containerd]\\nsnapshotter = 'missing'\"]\n", report.ExitPrecondition,
			"the old configuration was restored", "Container Runtime Interface")
	}
	n.expect(t, n.Version, smallDump())
}
