package nodes

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	openRCInit = "/sbin/openrc-init"
	// bootMark is a file that the last service of a boot creates, because openrc-init sends no notice.
	bootMark    = "var/lib/testenv-booted"
	markService = `#!/sbin/openrc-run
depend() {
	after *
}
start() {
	touch /` + bootMark + `
}
`
)

// markBoot adds the service that creates bootMark to a node with OpenRC, and disables cloud-init, whose SysV scripts ignore
// disabledFlag.
func markBoot(root string) error {
	unwanted, err := filepath.Glob(filepath.Join(root, "etc/runlevels/default/cloud-*"))
	if err != nil {
		return err
	}
	for _, service := range unwanted {
		if err := os.Remove(service); err != nil {
			return err
		}
	}
	const service = "/etc/init.d/testenv-booted"
	if err := os.WriteFile(filepath.Join(root, service), []byte(markService), 0o755); err != nil { //nolint:gosec // a program
		return err
	}
	return os.Symlink(service, filepath.Join(root, "etc/runlevels/default/testenv-booted"))
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
