//go:build unix

package launch

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Reboot asks the init system for an orderly reboot and returns when it has agreed.
func Reboot(ctx context.Context) error {
	// Not /sbin/reboot: without systemd as PID 1 that would be somebody else's program.
	out, err := exec.CommandContext(ctx, "/usr/bin/systemctl", "--no-wall", "--no-block", "reboot").CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl reboot: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
