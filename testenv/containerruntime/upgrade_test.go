package containerruntime

import (
	"fmt"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
	"github.com/machineadm/machineadm/testenv/tools"
)

// TestUpgrade keeps one document while Debian's 1.7 becomes upstream's 2.1, in make campaign alone, and 2.3, where a package would
// put them.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	n := start(t, containerd.V17)
	for _, present := range []struct {
		name  string
		files map[string]string
	}{
		{"by hand", map[string]string{containerd.Config: byHand, "/etc/containerd/site.d/10.toml": site}},
		{"absent", nil},
	} {
		t.Run(present.name, func(t *testing.T) {
			n.MustExec(t, "sh", "-c", "rm -f /etc/systemd/system/containerd.service.d/*; cp -n /usr/bin/containerd /usr/bin/containerd-shim-runc-v2 /usr/bin/ctr /root/; cp --remove-destination /root/containerd /root/containerd-shim-runc-v2 /root/ctr /usr/bin/")
			n.reset(t, present.files)
			n.apply(t, small)
			n.expect(t, containerd.V17, smallDump())
			for _, v := range containerd.Versions() {
				if v.Packaged() {
					continue
				}
				n.upgrade(t, v)
				n.apply(t, small)
				n.expect(t, v, smallDump())
				if present.files != nil {
					n.expect(t, v, map[string]string{"confDir": `"/etc/cni/by-hand.d"`})
				}
			}
		})
	}
}

// upgrade puts the programs of a version in place of those that are there, and restarts the daemon, as a package does.
func (n node) upgrade(t *testing.T, v containerd.Version) {
	t.Helper()
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		path := tools.For(t, fmt.Sprintf("containerd-%s/%s", v, name))
		n.MustExec(t, "rm", "-f", "/usr/bin/"+name)
		if err := n.CopyIn(t.Context(), path, "/usr/bin/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n.MustExec(t, "systemctl", "restart", "containerd")
	n.Await(t)
}

// TestTwoContainerds: the one that the unit runs counts, not the first one on the path, and with a drop-in of the unit
// that is the other one.
func TestTwoContainerds(t *testing.T) {
	t.Parallel()
	n := start(t, containerd.V17)
	for _, name := range []string{"containerd", "containerd-shim-runc-v2", "ctr"} {
		path := tools.For(t, "containerd-2.3/"+name)
		if err := n.CopyIn(t.Context(), path, "/usr/local/bin/"+name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	config := func() string { return n.MustExec(t, "cat", containerd.Config).Stdout }
	n.reset(t, nil)
	n.apply(t, small)
	if text := config(); !strings.Contains(text, "io.containerd.grpc.v1.cri") || !strings.Contains(text, "version = 2") {
		t.Errorf("not for 1.7, which the unit runs:\n%s", text)
	}
	n.Write(t, "/etc/systemd/system/containerd.service.d/local.conf", "[Service]\nExecStart=\nExecStart=/usr/local/bin/containerd --config /etc/containerd/local.toml\n")
	n.MustExec(t, "systemctl", "daemon-reload") // and the daemon that runs is still the other one
	n.apply(t, small)
	if a := n.CRI(t, "version"); !strings.HasPrefix(a.Version.Version, "v2.3.") {
		t.Errorf("containerd %s runs", a.Version.Version)
	}
	text := n.MustExec(t, "cat", "/etc/containerd/local.toml").Stdout
	if !strings.Contains(text, "version = 3") || !strings.Contains(text, "imports") {
		t.Errorf("not for 2.3, which the unit runs now:\n%s", text)
	}
}
