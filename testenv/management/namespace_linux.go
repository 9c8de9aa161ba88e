package management

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/machineadm/machineadm/internal/require"
)

// variable has the network namespace that isolate made, as /proc names it. What inherits it in that namespace stays there.
const variable = "MACHINEADM_TEST_NETWORK"

// Main runs the tests of a package in a network namespace of their own, and is all that a TestMain with clusters calls. It
// builds programs that the cache does not hold first: minutes. So does more, which is for what else needs the machine's network. As
// another user than root it runs the tests where they are, and Start skips them, as it does where their tier does not run.
func Main(m *testing.M, more ...func(context.Context) error) {
	if os.Geteuid() == 0 && !isPrivate() && require.Runs(require.Cluster) {
		var err error
		for _, step := range append(more, prepare, isolate) {
			if err = step(context.Background()); err != nil {
				break
			}
		}
		fmt.Fprintln(os.Stderr, "run the tests in a network namespace:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func isPrivate() bool {
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	return err == nil && os.Getenv(variable) == namespace
}

// isolate executes this program again in a new network namespace. A namespace belongs to a thread, and an exec ends all
// threads but its own: the process, its output and its arguments stay what they are. It returns on failure only.
func isolate(ctx context.Context) error {
	runtime.LockOSThread() // never unlocked: without the exec the program ends
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if out, err := exec.CommandContext(ctx, "ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		return fmt.Errorf("ip link set lo up: %w: %s", err, out)
	}
	namespace, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	return syscall.Exec("/proc/self/exe", os.Args, append(os.Environ(), variable+"="+namespace))
}
