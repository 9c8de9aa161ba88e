package containerd_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// configuration is a configuration that the daemon is started with. What follows is kept for each version in
// testdata/daemon-VERSION.txt: whether it is up, whether it serves CRI, and what it warns of beyond an empty configuration.
type configuration struct {
	name  string
	files map[string]string
}

const (
	confD       = "/etc/containerd/conf.d/10.toml"
	runcOptions = "[plugins.'io.containerd.grpc.v1.cri'.containerd.runtimes.runc.options]\n"
)

func configurations() []configuration {
	one := func(name, text string) configuration {
		return configuration{name, map[string]string{containerd.Config: text}}
	}
	const net = "conf_dir = '/other/net.d'\n"
	return []configuration{
		{"no-file", nil},
		one("version-3", v3),
		one("version-5", "version = 5\n"),
		one("unknown-keys-v2", v2+"typo = 1\n"+cri2+"typo = 1\n"),
		one("unknown-keys-v3", v3+"typo = 1\n"+images3+"typo = 1\n"),
		one("wrong-type-v2", v2+cri2+"max_concurrent_downloads = 'three'\n"),
		one("wrong-type-option-v2", v2+runcOptions+"SystemdCgroup = 'yes'\n"),
		one("unknown-option-v2", v2+runcOptions+"Typo = true\n"),
		one("partial-runc-v2", v2+runcOptions+"SystemdCgroup = true\n"),
		one("default-runtime-missing-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.containerd]\ndefault_runtime_name = 'other'\n"),
		one("snapshotter-missing-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.containerd]\nsnapshotter = 'other'\n"),
		one("imports-missing-file", v2+"imports = ['/etc/containerd/missing.toml']\n"),
		one("mirrors-and-config-path-v2", v2+"[plugins.'io.containerd.grpc.v1.cri'.registry]\nconfig_path = '/etc/r.d'\n"+
			"[plugins.'io.containerd.grpc.v1.cri'.registry.mirrors.'m.test']\nendpoint = ['https://e.test']\n"),
		one("max-concurrent-downloads-v2", v2+cri2+"max_concurrent_downloads = 7\n"),
		one("cni-bin-dir-v3", v3+cni3+"bin_dir = '/one'\n"),
		one("cni-bin-dir-and-dirs-v3", v3+cni3+"bin_dir = '/one'\nbin_dirs = ['/two']\n"),
		// As in the configuration that Docker's package containerd.io ships.
		one("cri-disabled-by-short-name", "disabled_plugins = ['cri']\n"),
		one("cri-disabled-v2", v2+"disabled_plugins = ['io.containerd.grpc.v1.cri']\n"),
		{"conf.d-without-imports", map[string]string{containerd.Config: v2, confD: v2 + cni2 + net}},
		{"conf.d-without-main-file", map[string]string{confD: v2 + cni2 + net}},
		{"conf.d-imported", map[string]string{containerd.Config: v2 + "imports = ['/etc/containerd/conf.d/*.toml']\n", confD: v2 + cni2 + net}},
	}
}

// starts starts the daemon with every configuration.
func starts(t *testing.T, d *containerd.Daemon) {
	kept := readSections(t, "daemon-"+string(d.Version)+".txt")
	began := start(t, d, map[string]string{containerd.Config: v2})
	if !began.up {
		t.Fatalf("does not start with an empty configuration:\n%s", strings.Join(began.said, "\n"))
	}
	for _, c := range configurations() {
		t.Run(c.name, func(t *testing.T) {
			got := start(t, d, c.files)
			answer := fmt.Sprintf("up: %v\nCRI: %s\n", got.up, got.cri)
			for _, line := range got.said {
				if !slices.Contains(began.said, line) {
					answer += "log: " + line + "\n"
				}
			}
			kept.check(t, c.name, answer)
		})
	}
}

// outcome is how a start went.
type outcome struct {
	up   bool
	cri  string
	said []string // warnings and errors
}

// start starts the daemon with these files below /etc/containerd and no others.
func start(t *testing.T, d *containerd.Daemon, files map[string]string) outcome {
	t.Helper()
	// A unit that failed starts again by itself, and not at all after the fifth time in ten seconds.
	d.MustExec(t, "sh", "-c", "systemctl stop containerd; systemctl reset-failed containerd 2>/dev/null; rm -rf /etc/containerd; mkdir /etc/containerd")
	for path, text := range files {
		d.Write(t, path, text)
	}
	mark := journalEnd(t, d)
	r, err := d.Exec(t.Context(), "systemctl", "start", "containerd")
	if err != nil {
		t.Fatal(err)
	}
	o := outcome{up: r.ExitCode == 0, cri: "down"}
	if o.up {
		o.cri = cri(t, d)
	} else {
		d.MustExec(t, "systemctl", "stop", "containerd")
	}
	for line := range strings.Lines(said(journalSince(t, d, mark))) {
		line = strings.TrimSpace(line)
		reported := strings.Contains(line, "level=warning") || strings.Contains(line, "level=error") || strings.Contains(line, "level=fatal") ||
			strings.HasPrefix(line, "containerd: ") || strings.HasPrefix(line, "panic: ")
		if reported && !slices.Contains(o.said, line) {
			o.said = append(o.said, line)
		}
	}
	return o
}

// journalEnd is a mark for journalSince.
func journalEnd(t *testing.T, d *containerd.Daemon) string {
	t.Helper()
	shown := d.MustExec(t, "journalctl", "--lines=0", "--show-cursor", "--quiet").Stdout
	return strings.TrimSpace(strings.TrimPrefix(shown, "-- cursor:"))
}

func journalSince(t *testing.T, d *containerd.Daemon, mark string) string {
	t.Helper()
	// Output of a unit reaches the journal with a short delay.
	d.MustExec(t, "journalctl", "--sync")
	return d.MustExec(t, "journalctl", "--after-cursor="+mark, "--unit=containerd", "--output=cat", "--no-pager").Stdout
}

// cri waits until the daemon reports its final state: ready, and with which directory of networks, or not served.
func cri(t *testing.T, d *containerd.Daemon) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		a := d.CRI(t, "status")
		switch {
		case a.Error == "" && a.RuntimeReady.Met:
			return "ready, networks of " + configOf(t, a).CNI.ConfDir
		case a.NotServed:
			return a.Error
		case time.Now().After(deadline):
			return "not ready in 30 s: " + a.Error + a.RuntimeReady.Message
		}
	}
}

// criConfig is what the tests need of the configuration in the status of every version.
type criConfig struct {
	CNI struct {
		BinDir  string   `json:"binDir"`
		BinDirs []string `json:"binDirs"`
		ConfDir string   `json:"confDir"`
	} `json:"cni"`
}

func configOf(t *testing.T, a containerd.Answer) (c criConfig) {
	t.Helper()
	if err := json.Unmarshal([]byte(a.Info["config"]), &c); err != nil {
		t.Fatalf("the configuration in the status: %v", err)
	}
	return c
}
