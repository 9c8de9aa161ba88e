package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Reboot requests an orderly reboot and returns when Windows accepted it.
func Reboot(ctx context.Context) error {
	shutdown := filepath.Join(os.Getenv("SystemRoot"), "System32", "shutdown.exe")
	if err := exec.CommandContext(ctx, shutdown, "/r", "/t", "0", "/d", "p:4:2").Run(); err != nil {
		return fmt.Errorf("shutdown /r: %w", err)
	}
	return nil
}
