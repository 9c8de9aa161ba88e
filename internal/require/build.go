package require

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Build compiles the main package in a directory to a file, by the script that compiles a release, so that what is tested is
// what is shipped, and compiled once.
func Build(ctx context.Context, dir, file string) error {
	script, err := buildScript()
	if err != nil {
		return err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return err
	}
	if file, err = filepath.Abs(file); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, script, "program", file, dir)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, out)
	}
	return nil
}

// buildScript returns the path of testenv/tools/build.sh of the checkout that holds the working directory.
func buildScript() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		script := filepath.Join(at, "testenv", "tools", "build.sh")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		} else if !errors.Is(err, os.ErrNotExist) || at == filepath.Dir(at) {
			return "", fmt.Errorf("testenv/tools/build.sh is in no directory above %s: %w", dir, err)
		}
	}
}
