package hardship

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

const (
	nodeFile = "/etc/machineadm/node.yaml"
	nodeUnit = `[Service]
Type=oneshot
KillMode=mixed
ExecStart=/usr/bin/machineadm apply --reboot --path ` + nodeFile + `
StandardOutput=journal+console
StandardError=journal+console
`
)

// bootNode boots a machine on which the service machineadm applies a stream that requests a reboot.
func bootNode(t *testing.T) *nodes.Node {
	t.Helper()
	return nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, Prepare: func(root string) error {
		for to, from := range map[string]string{
			"/usr/bin/" + hostBinary: hostBinary, "/usr/libexec/machineadm/" + noopBinary: plugins + "/" + noopBinary,
		} {
			data, err := os.ReadFile(filepath.Join(built, from))
			if err != nil {
				return err
			}
			if err := install(root, to, string(data), 0o755); err != nil {
				return err
			}
		}
		if err := install(root, "/etc/systemd/system/machineadm.service", nodeUnit, 0o644); err != nil {
			return err
		}
		return install(root, nodeFile, noopDocument("a", "touch: [/var/mark], reboot: AfterRun"), 0o600)
	}})
}

func install(root, path, text string, mode os.FileMode) error {
	at := filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, []byte(text), mode)
}

// TestNodeThatCannotKeepState: a run that cannot save its state for after the reboot ends with exit code 9, the machine
// does not reboot, and its console shows why. With room it does reboot.
func TestNodeThatCannotKeepState(t *testing.T) {
	n := bootNode(t)
	const state = "/var/lib/machineadm"
	boot := func() string {
		t.Helper()
		return n.MustExec(t, "cat", "/proc/sys/kernel/random/boot_id").Stdout
	}
	before := boot()
	n.MustExec(t, "mkdir", "-m", "0700", "-p", state)
	for _, c := range []struct{ name, hit, repair, says string }{
		{"full", `mount -t tmpfs -o size=64k,mode=0700 tmpfs "$1"; dd if=/dev/zero of="$1/filler" bs=4k 2>/dev/null || true`, `umount "$1"`, state},
		{"read-only", `mount -t tmpfs -o ro,mode=0700 tmpfs "$1"`, `umount "$1"`, state},
		{
			"only for requested reboots", `cp /etc/machine-id "$1/machine-id"
				echo '{"generation":"another","count":1}' >"$1/reboots.json"; mount --bind "$1/reboots.json" "$1/reboots.json"`,
			`umount "$1/reboots.json"`, "record a requested reboot: ",
		},
		{
			"nothing would resume after the reboot", `mount --bind /etc/systemd/system /etc/systemd/system; mount -o remount,bind,ro /etc/systemd/system`,
			`umount /etc/systemd/system`, "/etc/systemd/system",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			n.MustExec(t, "rm", "-f", "/var/mark", "/run/machineadm/report.json")
			n.MustExec(t, "sh", "-ec", c.hit, "sh", state)
			defer n.MustExec(t, "sh", "-ec", c.repair, "sh", state)
			mark := "machineadm begins " + strconv.Quote(c.name)
			n.MustExec(t, "sh", "-c", `echo "$1" >/dev/console`, "sh", mark)
			if r, err := n.Exec(t.Context(), "systemctl", "start", "machineadm"); err != nil || r.ExitCode == 0 {
				t.Errorf("the unit succeeded (%v)", err)
			}
			if got := strings.TrimSpace(n.MustExec(t, "systemctl", "show", "-P", "ExecMainStatus", "machineadm").Stdout); got != strconv.Itoa(report.ExitState) {
				t.Errorf("exit %s, want %d\n%s", got, report.ExitState, n.MustExec(t, "journalctl", "-u", "machineadm", "--no-pager").Stdout)
			}
			// A requested reboot is a job at once.
			if jobs := n.MustExec(t, "systemctl", "list-jobs", "--no-legend", "--no-pager").Stdout; strings.Contains(jobs, "reboot") {
				t.Fatalf("the machine is about to reboot:\n%s", jobs)
			}
			if boot() != before {
				t.Fatal("the machine has rebooted")
			}
			var said string
			eventually(t, "the outcome on the console", func() bool {
				_, said, _ = strings.Cut(console(t, n), mark)
				return strings.Contains(said, "]: error: ") && strings.Contains(said, c.says) && strings.Contains(said, "]:   hint: ")
			})
			if strings.Contains(said, "rebooting") {
				t.Errorf("the console reports a reboot:\n%s", said)
			}
			if out, err := n.Exec(t.Context(), "test", "-e", sentinel); err != nil || out.ExitCode == 0 {
				t.Errorf("there is a sentinel (%v)", err)
			}
		})
	}
	if t.Failed() {
		return
	}
	n.MustExec(t, "rm", "-f", "/var/mark")
	n.MustExec(t, "systemctl", "start", "--no-block", "machineadm")
	eventually(t, "the reboot of a run that has room", func() bool { return strings.Contains(console(t, n), "reboot.target") })
}

// console returns the output of the machine's console.
func console(t *testing.T, n *nodes.Node) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(cache, "machineadm-testenv", "run", n.Name(), "console.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
