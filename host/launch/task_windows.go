package launch

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// RegisterTask registers or replaces the scheduled task that an XML file defines.
func RegisterTask(ctx context.Context, name, file string) error {
	return schtasks(ctx, "/Create", "/TN", name, "/XML", file, "/F")
}

// RemoveTask deletes a scheduled task, if it exists.
func RemoveTask(ctx context.Context, name string) error {
	return ignoreAbsent(schtasks(ctx, "/Delete", "/TN", name, "/F"), filepath.Join(os.Getenv("SystemRoot"), "System32", "Tasks", name))
}

func schtasks(ctx context.Context, arguments ...string) error {
	program := filepath.Join(os.Getenv("SystemRoot"), "System32", "schtasks.exe")
	out, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("schtasks %s: %w: %s", arguments[0], err, strings.TrimSpace(string(out)))
	}
	return nil
}
