package nodes

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// runIsolated runs a builder in mount and process namespaces of its own: its mounts are never seen by the machine, and
// however it ends, by itself, by ctx or with this process, no mount and no process of it remains.
func runIsolated(ctx context.Context, site buildSite, stdin io.Reader, env []string, argv ...string) error {
	isolate := []string{"--mount", "--pid", "--fork", "--kill-child=SIGKILL", "--mount-proc", "--"}
	cmd := exec.CommandContext(ctx, "unshare", append(isolate, argv...)...)
	cmd.Env = env
	cmd.Dir = site.dir
	cmd.Stdin = stdin
	cmd.Stdout = site.log
	cmd.Stderr = site.log
	cmd.ExtraFiles = []*os.File{site.lock}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	// The death signal fires when the starting thread ends, so this thread must outlive the builder.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return fmt.Errorf("%s: %w", argv[0], err)
	}
	return nil
}
