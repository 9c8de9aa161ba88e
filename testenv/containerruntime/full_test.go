package containerruntime

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/containerd"
)

// full is a document of the remaining settings, for 1.7 and later.
const full = small + `  runtimes:
    runc:
      baseSpec: {rlimits: {RLIMIT_NOFILE: {soft: 1024, hard: 4096}}}
      options: {NoNewKeyring: true}
    kata: {binary: /opt/kata/bin/containerd-shim-kata-v2, options: {ConfigPath: /etc/kata.toml}}
  defaultRuntime: runc
  cdi: {enabled: true, specDirs: [/etc/cdi, /srv/cdi]}
  nri: {enabled: false}
  cni: {binDirs: [/srv/cni/bin], confDir: /srv/cni/net.d}
  rootDir: /var/lib/containerd/other
  stateDir: /run/containerd-other
  imports: [/etc/containerd/more/*.toml]
`

// TestFull applies everything that the specification has and looks for it in the dump.
func TestFull(t *testing.T) {
	t.Parallel()
	for _, v := range containerd.Versions() {
		t.Run(string(v), func(t *testing.T) {
			t.Parallel()
			n := start(t, v)
			if v == containerd.V16 {
				n.refused(t, full, report.ExitPrecondition, "spec.cdi.enabled", "it came with 1.7")
			}
			spec := full
			if v == containerd.V16 {
				spec = strings.Replace(full, "  cdi: {enabled: true, specDirs: [/etc/cdi, /srv/cdi]}\n", "", 1)
			}
			n.Write(t, "/etc/containerd/more/a.toml", "version = 2\n[plugins.'io.containerd.gc.v1.scheduler']\nstartup_delay = '300ms'\n")
			// The clock is set ahead between runs: times decide nothing.
			n.apply(t, spec)
			n.Bash(t, "touch -d '+1 hour' "+containerd.Config+" /etc/containerd/conf.d/* /etc/systemd/system/containerd.service.d/* 2>/dev/null; systemctl daemon-reload")
			n.apply(t, spec)
			n.expect(t, v, smallDump())
			n.expect(t, v, map[string]string{"confDir": `"/srv/cni/net.d"`})
			tree := n.dumped(t)
			runtime := place(v, "cgroup")[:2]
			in := func(keys ...string) string { return at(t, tree, append(append([]string{}, runtime...), keys...)...) }
			for want, got := range map[string]string{
				`"/etc/containerd/machineadm/base-runc.json"`: in("containerd", "runtimes", "runc", "base_runtime_spec"),
				`"/opt/kata/bin/containerd-shim-kata-v2"`:     in("containerd", "runtimes", "kata", "runtime_path"),
				`"/etc/kata.toml"`:                            in("containerd", "runtimes", "kata", "options", "ConfigPath"),
				`"io.containerd.kata.v2"`:                     in("containerd", "runtimes", "kata", "runtime_type"),
				`"/var/lib/containerd/other"`:                 at(t, tree, "root"),
				`"/run/containerd-other"`:                     at(t, tree, "state"),
				`"300ms"`:                                     at(t, tree, "plugins", "io.containerd.gc.v1.scheduler", "startup_delay"),
			} {
				if got != want {
					t.Errorf("%s is missing; there is %s\n%s", want, got, n.files(t))
				}
			}
			if text := n.MustExec(t, "cat", "/etc/containerd/machineadm/base-runc.json").Stdout; !strings.Contains(text, "RLIMIT_NOFILE") || !strings.Contains(text, "4096") {
				t.Errorf("the base specification:\n%s", text)
			}
			n.apply(t, small) // which removes the rest
			if r := n.Bash(t, "ls /etc/containerd/machineadm/base-runc.json"); r.ExitCode == 0 {
				t.Error("the base specification is left")
			}
			if got := at(t, n.dumped(t), append(append([]string{}, runtime...), "containerd", "runtimes", "kata")...); got != "(none)" {
				t.Errorf("kata is left: %s", got)
			}
		})
	}
}
