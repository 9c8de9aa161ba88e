package kubernetesnode

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	firstBoot = "machineadm-firstboot.service"
	// importing replaces the unit that imports the images: it does not require containerd, whose first failure would end it for good. So the
	// images can come after the first run, as on a machine that loads them at its boot.
	importing = `[Service]
Type=oneshot
RemainAfterExit=yes
TimeoutStartSec=infinity
ExecStart=/bin/sh -c 'until ctr --namespace=k8s.io images import /usr/lib/testenv/images.tar; do sleep 1; done'
`
)

// needed are the services without which a machine does not become a node: the container runtime, the kubelet, the time daemon and the
// network, which is the default route here.
func needed() []string { return []string{"containerd", "kubelet", "chrony", "testenv-route"} }

// troubles are what happens to a service at a boot, as drop-ins of its unit. The mark of a failure needs the privileges that chrony gives up.
func troubles() map[string]string {
	late := func(seconds int) string {
		return fmt.Sprintf("[Service]\nTimeoutStartSec=infinity\nExecStartPre=/bin/sleep %d\n", seconds)
	}
	return map[string]string{
		"5 s late": late(5), "60 s late": late(60),
		"fails once": "[Service]\nRestart=on-failure\nRestartSec=5\nExecStartPre=+/bin/sh -c 'test -e /run/failed-%N || { : >/run/failed-%N; exit 1; }'\n",
	}
}

// TestLateServices: a first boot makes the machine a node, whatever service comes late or fails once, and no hand helps.
func TestLateServices(t *testing.T) {
	t.Parallel()
	files := troubles()
	for _, trouble := range []string{"5 s late", "fails once"} {
		t.Run("all "+trouble, func(t *testing.T) {
			t.Parallel()
			dropIns := map[string]string{}
			for _, service := range needed() {
				dropIns[service] = files[trouble]
			}
			becomesNode(t, dropIns)
		})
	}
}

// TestLateServicesInPairs has each trouble of each service alone, and of each two services.
func TestLateServicesInPairs(t *testing.T) {
	needs.Campaign(t)
	t.Parallel()
	files := troubles()
	for i, one := range needed() {
		for trouble, dropIn := range files {
			t.Run(one+" "+trouble, func(t *testing.T) {
				t.Parallel()
				becomesNode(t, map[string]string{one: dropIn})
			})
			for _, other := range needed()[i+1:] {
				for further, second := range files {
					t.Run(one+" "+trouble+", "+other+" "+further, func(t *testing.T) {
						t.Parallel()
						becomesNode(t, map[string]string{one: dropIn, other: second})
					})
				}
			}
		}
	}
}

// becomesNode boots a machine with these drop-ins by service, whose unit of the first boot applies the stream of a control plane.
func becomesNode(t *testing.T, dropIns map[string]string) {
	t.Helper()
	f := newFleet(t, "control")
	unit, err := os.ReadFile("../../installer/linux/system/" + firstBoot)
	require.NoError(t, err)
	address := f.network.Address("control").String()
	files := map[string]string{
		stream: strings.NewReplacer("ENDPOINT", address+":6443", "ADDRESS", address).Replace(control),
		"/etc/systemd/system/testenv-images.service": importing,
		"/usr/lib/systemd/system/" + firstBoot:       string(unit),
	}
	for service, text := range dropIns {
		files["/etc/systemd/system/"+service+".service.d/trouble.conf"] = text
	}
	n := node{nodes.Boot(t, cluster.Machine(t, f.network, "control", true, func(root string) error {
		var failed error
		for from, to := range f.programs {
			failed = errors.Join(failed, needs.CopyProgram(filepath.Join(root, to), from))
		}
		for path, text := range files {
			at := filepath.Join(root, path)
			failed = errors.Join(failed, os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o600))
		}
		wants := filepath.Join(root, "etc/systemd/system/multi-user.target.wants", firstBoot)
		return errors.Join(failed, os.Symlink("/usr/lib/systemd/system/"+firstBoot, wants))
	}))}
	said := func() string {
		return n.MustExec(t, "sh", "-c", "systemctl show -P NRestarts "+firstBoot+"; journalctl --no-pager -o short-monotonic -u "+firstBoot+"").Stdout
	}
	r, err := n.Exec(t.Context(), "timeout", "900", "sh", "-c", "until test -s /run/cluster-api/bootstrap-success.complete; do sleep 0.1; done")
	require.NoError(t, err)
	require.Zero(t, r.ExitCode, said())
	t.Log(said())
	cluster.AwaitReady(t, n.Node, nodesPath, 1)
}
