package nodes

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// limitsArguments start systemd with writable control groups: systemd-nspawn mounts them read-only, and systemd gives no
// limits when it finds them so. A container in the node has a session keyring, which systemd-nspawn refuses otherwise.
func limitsArguments() []string {
	const start = `for h in /sys/fs/cgroup/*/; do mount -o remount,bind,rw "$h" || exit; done; exec /usr/lib/systemd/systemd`
	return []string{"--notify-ready=yes", "--kill-signal=SIGRTMIN+3", "--system-call-filter=@keyring", "/bin/sh", "-c", start}
}

// makeGroups makes the empty groups of a session: that of version 2, which it returns, and with limits its shadows.
func (m *nspawn) makeGroups(ctx context.Context) (cgroup, error) {
	group, err := cgroupOf(m.inst.name)
	if err != nil {
		return "", err
	}
	if err := group.remove(ctx); err != nil {
		return "", err
	}
	if m.limits {
		if m.shadows, err = shadowsOf(m.inst.name); err != nil {
			return "", err
		}
	}
	for _, shadow := range m.shadows {
		if err := shadow.remove(ctx); err != nil {
			return "", err
		}
		if err := shadow.makeShadow(); err != nil {
			return "", err
		}
	}
	return group, group.make()
}

// makeShadow makes a group of version 1. A new one of the controller cpuset has no processors, and so takes no process.
func (c cgroup) makeShadow() error {
	if err := c.make(); err != nil {
		return err
	}
	for _, set := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(filepath.Dir(string(c)), set))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(string(c), set), all, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// joinShadows is the beginning of a script: it moves the shell into the shadows.
func (m *nspawn) joinShadows() string {
	var script strings.Builder
	for _, shadow := range m.shadows {
		fmt.Fprintf(&script, "echo 0 >'%s/cgroup.procs' && ", shadow)
	}
	return script.String()
}
