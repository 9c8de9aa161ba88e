package containerd_test

import (
	"strings"
	"testing"

	"github.com/machineadm/machineadm/testenv/containerd"
)

// restarts: the effects of a change before, at and after a restart of the daemon.
func restarts(t *testing.T, d *containerd.Daemon) {
	t.Run("needed", func(t *testing.T) {
		if o := start(t, d, map[string]string{containerd.Config: v2}); !o.up {
			t.Fatalf("not up: %q", o.said)
		}
		const text = v2 + cni2 + "conf_dir = '/new/net.d'\n"
		d.Write(t, containerd.Config, text)
		if got := configOf(t, d.CRI(t, "status")).CNI.ConfDir; got != "/etc/cni/net.d" {
			t.Errorf("the daemon that runs has read the new file: %s", got)
		}
		if dump := read(t, d.Dump(t, containerd.Config).Stdout); !strings.Contains(value(t, dump, confDir(d.Version)), "/new/net.d") {
			t.Errorf("the dump shows %s", value(t, dump, confDir(d.Version)))
		}
		if r := d.Bash(t, "systemctl reload containerd"); r.ExitCode == 0 || !strings.Contains(r.Stderr, "not applicable") {
			t.Errorf("the unit can be reloaded: %d, %s", r.ExitCode, r.Stderr)
		}
		d.Restart(t)
		if got := configOf(t, d.CRI(t, "status")).CNI.ConfDir; got != "/new/net.d" {
			t.Errorf("the daemon has not read the new file: %s", got)
		}
	})
	// The times of the unit are replaced, so that the speed of this machine does not matter.
	t.Run("unit", func(t *testing.T) {
		got := d.MustExec(t, "systemctl", "show", "--property=Restart,RestartUSec,StartLimitBurst,StartLimitIntervalUSec", "containerd")
		if got.Stdout != "Restart=always\nRestartUSec=5s\nStartLimitIntervalUSec=10s\nStartLimitBurst=5\n" {
			t.Errorf("the unit: %q", got.Stdout)
		}
		d.Write(t, "/run/systemd/system/containerd.service.d/times.conf", "[Unit]\nStartLimitIntervalSec=1h\n[Service]\nRestartSec=1h\n")
		d.MustExec(t, "systemctl", "daemon-reload")
	})
	// The unit that failed will be started again: it is neither active nor failed.
	t.Run("broken", func(t *testing.T) {
		d.MustExec(t, "systemctl", "reset-failed", "containerd")
		d.Write(t, containerd.Config, "version = \n")
		if r := d.Bash(t, "systemctl restart containerd"); r.ExitCode == 0 {
			t.Error("a daemon that cannot read its configuration was started")
		}
		got := d.MustExec(t, "systemctl", "show", "--property=ActiveState,SubState,Result", "containerd")
		if got.Stdout != "Result=exit-code\nActiveState=activating\nSubState=auto-restart\n" {
			t.Errorf("the unit is %q", got.Stdout)
		}
		if a := d.CRI(t, "version"); !a.Down {
			t.Errorf("CRI: %+v", a)
		}
	})
	// A tool that tries, restores and tries again comes to the unit's limit of starts, also when each of them succeeds.
	t.Run("limit", func(t *testing.T) {
		d.Write(t, containerd.Config, v2)
		d.MustExec(t, "systemctl", "reset-failed", "containerd")
		const until = `for n in 1 2 3 4 5 6; do systemctl restart containerd || exit 0; done; exit 1`
		if r := d.Bash(t, until); r.ExitCode != 0 {
			t.Error("there is no limit")
		}
		// Only the journal reports it: a daemon that is stopped soon after its start can exit with 1, and that stays the result.
		d.MustExec(t, "journalctl", "--sync")
		const journal = "journalctl --no-pager --output=cat _PID=1 UNIT=containerd.service"
		if log := d.MustExec(t, strings.Fields(journal)...).Stdout; !strings.Contains(log, "Start request repeated too quickly") {
			t.Errorf("systemd reports no limit:\n%s", log)
		}
		d.MustExec(t, "systemctl", "reset-failed", "containerd")
		d.Restart(t)
		d.MustExec(t, "rm", "-r", "/run/systemd/system/containerd.service.d")
		d.MustExec(t, "systemctl", "daemon-reload")
	})
}

func confDir(v containerd.Version) path {
	for _, s := range settings() {
		if s.name == "cni conf dir" {
			return s.at[fileVersion[v]]
		}
	}
	return nil
}
