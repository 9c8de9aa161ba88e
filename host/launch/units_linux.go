package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

const systemctl = "/usr/bin/systemctl"

// Systemd reports whether systemd is PID 1. Source: sd_booted(3).
func Systemd() bool {
	info, err := os.Lstat("/run/systemd/system")
	return err == nil && info.IsDir()
}

// StartUnit makes systemd read its unit files again, and starts a unit without waiting for it.
func StartUnit(ctx context.Context, name string) error {
	if err := callSystemctl(ctx, "daemon-reload"); err != nil {
		return err
	}
	return callSystemctl(ctx, "--no-block", "start", name)
}

// StopUnit stops a unit without waiting for it.
func StopUnit(ctx context.Context, name string) error {
	if !Systemd() {
		return nil
	}
	return callSystemctl(ctx, "--no-block", "stop", name)
}

func callSystemctl(ctx context.Context, arguments ...string) error {
	out, err := exec.CommandContext(ctx, systemctl, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(arguments, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
