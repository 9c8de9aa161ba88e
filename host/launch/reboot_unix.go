//go:build unix

package launch

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Reboot requests an orderly reboot from systemd and returns when systemd accepted it.
func Reboot(ctx context.Context) error {
	// Not /sbin/reboot, which without systemd belongs to another init system.
	out, err := exec.CommandContext(ctx, "/usr/bin/systemctl", "--no-wall", "--no-block", "reboot").CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl reboot: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}
