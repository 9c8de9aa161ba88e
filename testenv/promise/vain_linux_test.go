package promise_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// ready are programs and units in the form of those that a node has: a plan only asks for their versions and states.
func ready(root string) error {
	unit := func(program string) string {
		return "[Service]\nExecStart=" + program + "\n[Install]\nWantedBy=multi-user.target\n"
	}
	const script = "#!/bin/sh\ncase $1 in\nversion) echo '{\"clientVersion\": {\"gitVersion\": \"v1.37.1\"}}' ;;\n--version) echo Kubernetes v1.37.1 ;;\n*) exec sleep infinity ;;\nesac\n"
	for name, text := range map[string]string{
		"usr/bin/kubeadm": script, "usr/bin/kubelet": script, "usr/sbin/chronyd": script,
		"usr/lib/systemd/system/kubelet.service": unit("/usr/bin/kubelet"), "usr/lib/systemd/system/chrony.service": unit("/usr/sbin/chronyd"),
		"etc/chrony/chrony.conf": "confdir /etc/chrony/conf.d\npool 2.debian.pool.ntp.org iburst\n",
		"etc/chrony/conf.d/none": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o755)
		if !strings.HasPrefix(text, "#!") {
			mode = 0o644
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			return err
		}
	}
	return nil
}

// The documents of a node, of which a case has some.
const (
	ofKernel  = "kind: Sysctl\nmetadata: {name: kernel}\nspec: {parameters: {net.ipv4.ip_forward: 1}}\n"
	ofTime    = "kind: Timesync\nmetadata: {name: time}\nspec: {provider: chronyd, servers: [{address: ntp.example.com}]}\n"
	ofRuntime = "kind: ContainerRuntime\nmetadata: {name: runtime}\nspec: {cgroupDriver: systemd}\n"
	ofNode    = "kind: KubernetesNode\nmetadata: {name: node}\nspec: {role: controlPlaneInit, kubernetesVersion: v1.37.1, node: {swap: keep}}\n"
)

// TestNothingIsDoneInVain: what no document of a stream can provide is said before anything is changed, all of it at once, on a live
// machine with documents ahead that change the kernel and restart daemons.
func TestNothingIsDoneInVain(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.System)
	put := install(build(t, t.TempDir()))
	node := booted{nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, Layers: []nodes.Layer{nodes.Containerd}, Prepare: func(root string) error {
		if err := put(root); err != nil {
			return err
		}
		return ready(root)
	}})}
	const containerd, state = "/usr/lib/systemd/system/containerd.service", "sysctl net.ipv4.ip_forward; systemctl show -P InvocationID containerd chrony"
	hide := func(files ...string) string {
		return "for f in " + strings.Join(files, " ") + "; do mv $f $f.hidden; done; systemctl daemon-reload"
	}
	usual := []string{ofKernel, ofTime, ofRuntime, ofNode}
	for name, c := range map[string]struct {
		trouble string
		stream  []string
		errors  []string // the beginnings of all of them; none: the stream is in order
		pending []string
	}{
		"in order":               {"systemctl stop containerd", usual, nil, []string{"KubernetesNode/node"}},
		"a broken configuration": {"mkdir -p /etc/containerd; echo not TOML >/etc/containerd/config.toml", usual, []string{"ContainerRuntime/runtime: /etc/containerd/config.toml: "}, []string{"KubernetesNode/node"}},
		"another kubeadm": {
			"sed -i s/v1.37.1/v1.34.0/ /usr/bin/kubeadm", usual, []string{"KubernetesNode/node: the installed kubeadm is v1.34.0"}, nil,
		},
		"no kubelet": {
			hide("/usr/bin/kubelet", "/usr/lib/systemd/system/kubelet.service"), usual,
			[]string{"KubernetesNode/node: the program kubelet is not installed", "KubernetesNode/node: the service kubelet is not installed"},
			nil,
		},
		"a bare machine": {
			"systemctl stop containerd chrony; " + hide("/usr/bin/kube*", containerd, "/usr/lib/systemd/system/kubelet.service", "/usr/lib/systemd/system/chrony.service", "/usr/sbin/losetup"), usual,
			[]string{
				"Timesync/time: chrony.service is not installed", "ContainerRuntime/runtime: containerd is not installed", "KubernetesNode/node: the program kubeadm is not installed",
				"KubernetesNode/node: the program kubelet is not installed", "KubernetesNode/node: the program losetup is not installed", "KubernetesNode/node: the service kubelet is not installed",
			},
			nil,
		},
		"the runtime comes later": {
			"systemctl stop containerd",
			[]string{ofKernel, ofNode, ofRuntime},
			[]string{"KubernetesNode/node: the container runtime does not answer"},
			nil,
		},
		"an unknown kind": {
			"systemctl stop containerd; " + hide(containerd),
			[]string{"kind: Packages\nmetadata: {name: all}\nspec: {}\n", ofKernel, ofRuntime},
			[]string{"Packages/all: "},
			[]string{"ContainerRuntime/runtime"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			node.MustExec(t, "sh", "-ec", "cp -a /usr/bin/kubeadm /root; systemctl start containerd chrony; sysctl -qw net.ipv4.ip_forward=0; cp -a /etc/containerd /root")
			defer node.MustExec(t, "sh", "-c", "for f in /usr/bin/*.hidden /usr/sbin/*.hidden /usr/lib/systemd/system/*.hidden; do test -e $f && mv $f ${f%.hidden}; done; "+
				"cp -a /root/kubeadm /usr/bin; rm -rf /etc/containerd; mv /root/containerd /etc; systemctl daemon-reload")
			_, err := node.Exec(t.Context(), "sh", "-ec", c.trouble)
			require.NoError(t, err)
			before, stateBefore := node.entries(t), node.MustExec(t, "sh", "-c", state).Stdout
			var stream strings.Builder
			for _, document := range c.stream {
				stream.WriteString("---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\n" + document)
			}
			for _, command := range []string{"plan", "apply"} {
				if len(c.errors) == 0 && command == "apply" {
					continue
				}
				got := node.host(t, stream.String(), command)
				var errors []string
				for _, e := range got.report.Errors {
					errors = append(errors, e.Document+": "+e.Message)
				}
				slices.Sort(errors)
				require.Len(t, errors, len(c.errors), got.output)
				for i, want := range slices.Sorted(slices.Values(c.errors)) {
					assert.True(t, strings.HasPrefix(errors[i], want), errors[i])
				}
				assert.Equal(t, c.pending, got.pending)
				exit := report.ExitPrecondition
				if len(c.errors) == 0 {
					exit = report.ExitDiffers
				}
				assert.Equal(t, exit, got.exit, got.output)
				if name == "the runtime comes later" {
					assert.Contains(t, errors[0], "; ContainerRuntime/runtime at "+nodeStream+":")
				}
			}
			assert.Equal(t, before, node.entries(t))
			assert.Equal(t, stateBefore, node.MustExec(t, "sh", "-c", state).Stdout)
		})
	}
}
