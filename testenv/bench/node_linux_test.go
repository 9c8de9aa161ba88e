package bench

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/nodes"
)

// fourFiles are the files that every program of BenchmarkFourFiles writes.
func fourFiles() map[string]string {
	files := map[string]string{}
	for i, name := range []string{"sysctl", "modules", "proxy", "mirrors"} {
		var text strings.Builder
		fmt.Fprintf(&text, "# %s, as a node has it.\n", name)
		for n := range 10 * (i + 1) {
			fmt.Fprintf(&text, "%s.key_%d = value %d\n", name, n, n)
		}
		files["/etc/bench/"+name+".conf"] = text.String()
	}
	return files
}

// rival is a program that writes files on a node.
type rival struct {
	unit string
	// prepare runs before each run and is not measured; run is one command or several.
	prepare []string
	run     [][]string
}

// BenchmarkFourFiles has machineadm and others write the same four files on a live node, Debian 12, one after the other.
// All but bash come from Debian's packages.
func BenchmarkFourFiles(b *testing.B) {
	s := newScene(b)
	n := nodes.Boot(b, nodes.Options{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Ansible, nodes.Ignition}})
	p := place{scene: s, node: n}
	rivals := []rival{p.bash(), p.ignition(), p.cloudInit(), p.ansible(), p.machineadm()}
	samples := map[string]Samples{}
	for b.Loop() {
		for round := range 4 {
			for _, r := range rivals {
				u := p.write(r)
				if round > 0 { // the first one fills caches
					samples[r.unit] = append(samples[r.unit], u)
				}
			}
		}
	}
	ours := samples["cpu-ms"].CPU()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(samples["bash-cpu-ms"].CPU(), "bash-cpu-ms")
	b.ReportMetric(samples["ignition-cpu-ms"].CPU(), "ignition-cpu-ms")
	b.ReportMetric(samples["cloud-init-cpu-ms"].CPU(), "cloud-init-cpu-ms")
	b.ReportMetric(samples["ansible-cpu-ms"].CPU(), "ansible-cpu-ms")
	b.ReportMetric(ours, "cpu-ms")
	b.ReportMetric(ours/samples["ignition-cpu-ms"].CPU(), "x-ignition")
	b.ReportMetric(samples["cloud-init-cpu-ms"].CPU()/ours, "cloud-init-x")
}

// place is a node with the programs in it.
type place struct {
	*scene
	node *nodes.Node
}

// put copies a file of this machine into the node.
func (p place) put(from, to string, mode uint32) {
	p.b.Helper()
	if err := p.node.CopyIn(p.b.Context(), from, to, 0o755); err != nil {
		p.b.Fatal(err)
	}
	p.node.MustExec(p.b, "chmod", fmt.Sprintf("%o", mode), to)
}

// putText makes a file in the node.
func (p place) putText(to, text string, mode uint32) {
	p.b.Helper()
	p.put(p.scene.write(filepath.Join(p.in, strings.ReplaceAll(to, "/", "_")), text), to, mode)
}

// inside measures a command in the node.
func (p place) inside(argv ...string) Usage {
	p.b.Helper()
	got := p.node.MustExec(p.b, append([]string{"/opt/bench/measure"}, argv...)...)
	u, err := ParseUsage([]byte(got.Stdout))
	if err != nil {
		p.b.Fatalf("%q: %v", argv, err)
	}
	return u
}

// write removes the files, runs r, and checks that they exist.
func (p place) write(r rival) Usage {
	p.b.Helper()
	p.node.MustExec(p.b, "rm", "-rf", "/etc/bench")
	if len(r.prepare) > 0 {
		p.node.MustExec(p.b, r.prepare...)
	}
	var sum Usage
	for _, argv := range r.run {
		u := p.inside(argv...)
		sum.CPU, sum.Wall, sum.MaxRSS = sum.CPU+u.CPU, sum.Wall+u.Wall, max(sum.MaxRSS, u.MaxRSS)
	}
	for path, content := range fourFiles() {
		if now, err := p.node.CopyOut(p.b.Context(), path); err != nil || string(now) != content {
			p.b.Fatalf("%s has not written %s: %q %v", r.unit, path, now, err)
		}
	}
	return sum
}

// machineadm is a live run: lock, state, report and all.
func (p place) machineadm() rival {
	p.b.Helper()
	p.put(p.path("measure"), "/opt/bench/measure", 0o755)
	p.put(p.path("machineadm"), "/usr/bin/machineadm", 0o755)
	p.put(filepath.Join(p.plugins, "machineadm-files-plugin-bench"), "/usr/local/libexec/machineadm/machineadm-files-plugin-bench", 0o755)
	yaml, _ := document("four", "bench", fourFiles())
	p.putText("/opt/bench/four.yaml", yaml, 0o600)
	return rival{unit: "cpu-ms", run: [][]string{{"/usr/bin/machineadm", "apply", "--path", "/opt/bench/four.yaml"}}}
}

// bash is the floor: a script without any checks.
func (p place) bash() rival {
	p.b.Helper()
	var script strings.Builder
	script.WriteString("set -eu\nmkdir -p /etc/bench\n")
	for _, path := range sortedKeys(fourFiles()) {
		fmt.Fprintf(&script, "tee %s >/dev/null <<'END'\n%sEND\nchmod 0644 %s\n", path, fourFiles()[path], path)
	}
	p.putText("/opt/bench/four.sh", script.String(), 0o755)
	return rival{unit: "bash-cpu-ms", run: [][]string{{"bash", "/opt/bench/four.sh"}}}
}

// ignition runs the stages fetch and files, on the node's own root.
func (p place) ignition() rival {
	p.b.Helper()
	type contents struct {
		Source string `json:"source"`
	}
	type file struct {
		Path      string   `json:"path"`
		Mode      int      `json:"mode"`
		Overwrite bool     `json:"overwrite"`
		Contents  contents `json:"contents"`
	}
	var list []file
	for _, path := range sortedKeys(fourFiles()) {
		data := base64.StdEncoding.EncodeToString([]byte(fourFiles()[path]))
		list = append(list, file{path, 0o644, true, contents{"data:;base64," + data}})
	}
	config, err := json.Marshal(map[string]any{
		"ignition": map[string]string{"version": "3.3.0"}, "storage": map[string]any{"files": list},
	})
	if err != nil {
		p.b.Fatal(err)
	}
	p.putText("/opt/bench/config.ign", string(config), 0o600)
	// It relabels what it wrote, also where there is no SELinux, unless that is said to be off.
	p.putText("/etc/selinux/config", "SELINUX=disabled\nSELINUXTYPE=none\n", 0o644)
	p.node.MustExec(p.b, "ln", "-sf", "/bin/true", "/usr/local/sbin/setfiles")
	stage := func(name string) []string {
		return []string{
			"env", "IGNITION_CONFIG_FILE=/opt/bench/config.ign", "/usr/lib/dracut/modules.d/30ignition/ignition",
			"-platform=file", "-root=/", "-stage=" + name, "-log-to-stdout",
		}
	}
	return rival{
		unit: "ignition-cpu-ms", run: [][]string{stage("fetch"), stage("files")},
		prepare: []string{"rm", "-f", "/run/ignition.json", "/run/ignition/neednet", "/etc/.ignition-result.json"},
	}
}

// cloudInit runs the three stages that a boot has, from a seed directory.
func (p place) cloudInit() rival {
	p.b.Helper()
	var user strings.Builder
	user.WriteString("#cloud-config\nwrite_files:\n")
	for _, path := range sortedKeys(fourFiles()) {
		fmt.Fprintf(&user, "  - {path: %s, permissions: '0644', encoding: b64, content: %s}\n", path,
			base64.StdEncoding.EncodeToString([]byte(fourFiles()[path])))
	}
	p.putText("/var/lib/cloud/seed/nocloud/user-data", user.String(), 0o600)
	p.putText("/var/lib/cloud/seed/nocloud/meta-data", "instance-id: bench\n", 0o600)
	return rival{
		unit: "cloud-init-cpu-ms", prepare: []string{"cloud-init", "clean"},
		run: [][]string{{"cloud-init", "init"}, {"cloud-init", "modules", "--mode=config"}, {"cloud-init", "modules", "--mode=final"}},
	}
}

// ansible has one task for the directory and one for each file, on the node itself.
func (p place) ansible() rival {
	p.b.Helper()
	var play strings.Builder
	play.WriteString("- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n")
	play.WriteString("    - file: {path: /etc/bench, state: directory, mode: '0755'}\n")
	for _, path := range sortedKeys(fourFiles()) {
		fmt.Fprintf(&play, "    - copy: {dest: %s, mode: '0644', content: %q}\n", path, fourFiles()[path])
	}
	p.putText("/opt/bench/play.yaml", play.String(), 0o644)
	return rival{
		unit: "ansible-cpu-ms",
		run:  [][]string{{"env", "LC_ALL=C.UTF-8", "HOME=/root", "ansible-playbook", "-i", "localhost,", "/opt/bench/play.yaml"}},
	}
}
