package nodes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// bootMark is a file that the last service of a boot creates, because only systemd sends a notice.
	bootMark   = "var/lib/testenv-booted"
	openRCMark = "#!/sbin/openrc-run\ndepend() {\n\tafter *\n}\nstart() {\n\ttouch /" + bootMark + "\n}\n"
	runitMark  = "#!/bin/sh\ntouch /" + bootMark + "\nexec sleep infinity\n"
	openRCInit = "/sbin/openrc-init"
	runitInit  = "/sbin/init"
)

// program is what systemd-nspawn starts.
func (i Init) program() string {
	if i == Runit {
		return runitInit
	}
	return openRCInit
}

// process is the name of PID 1, empty for systemd.
func (i Init) process() string {
	switch i {
	case OpenRC:
		return filepath.Base(openRCInit)
	case Runit:
		return "runit"
	}
	return ""
}

// markBoot adds the service that creates bootMark to a node with this init system, and disables what waits there for a network or a terminal.
func (i Init) markBoot(root string) error {
	if i == Runit {
		return markRunit(root)
	}
	// The SysV scripts of cloud-init ignore disabledFlag.
	if err := removeAll(root, "etc/runlevels/default/cloud-*"); err != nil {
		return err
	}
	const service = "/etc/init.d/testenv-booted"
	if err := os.WriteFile(filepath.Join(root, service), []byte(openRCMark), 0o755); err != nil { //nolint:gosec // a program
		return err
	}
	return os.Symlink(service, filepath.Join(root, "etc/runlevels/default/testenv-booted"))
}

// markRunit also removes the scripts that set up a machine and unmount its file systems, which systemd-nspawn does.
func markRunit(root string) error {
	if err := removeAll(root, "etc/rc[026S].d/[KS]*", "etc/runit/runsvdir/default/getty-*"); err != nil {
		return err
	}
	service := filepath.Join(root, "etc/sv/testenv-booted")
	return errors.Join(
		os.Mkdir(service, 0o755), //nolint:gosec // a directory of the system
		os.WriteFile(filepath.Join(service, "run"), []byte(runitMark), 0o755), //nolint:gosec // a program
		os.Symlink("/etc/sv/testenv-booted", filepath.Join(root, "etc/runit/runsvdir/default/testenv-booted")),
	)
}

func removeAll(root string, patterns ...string) error {
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return err
		}
		for _, name := range found {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	return nil
}

func removeMark(root string) error {
	err := os.Remove(filepath.Join(root, bootMark))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// awaitMark closes up when bootMark exists. It ends with the session.
func awaitMark(root string, s *session) {
	err := poll(context.Background(), pollInterval, "the end of the boot", func() (bool, error) {
		if closed(s.off) {
			return false, errOff
		}
		_, err := os.Lstat(filepath.Join(root, bootMark))
		return err == nil, nil
	})
	if err == nil {
		close(s.up)
	}
}
