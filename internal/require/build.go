package require

import (
	"context"
	"fmt"
	"os"
	"os/exec"
)

// Build compiles the main package in a directory to a file as testenv/tools/build.sh compiles a release, so that what is tested is
// what is shipped, and compiled once.
func Build(ctx context.Context, dir, file string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags=grpcnotrace", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, out)
	}
	return nil
}
