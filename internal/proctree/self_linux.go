package proctree

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// NoCoreDumps keeps the memory of this process, where secrets are, out of core dumps. RLIMIT_CORE, which children
// inherit, stops core files; it does not stop a pipe in core_pattern (core(5)), which PR_SET_DUMPABLE does. That one ends with
// the next exec, so that each program calls NoCoreDumps for itself.
//
// A process that is not dumpable cannot be traced, and its files in /proc belong to root. It still reaches its own,
// /proc/self/exe and /proc/self/fd among them, without privileges.
func NoCoreDumps() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("proctree: set RLIMIT_CORE: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("proctree: set PR_SET_DUMPABLE: %w", err)
	}
	return nil
}

// DieWithParent has the kernel kill this process when the thread that started it ends. Tree.Start asks for the same;
// an exec of a program with more rights than its parent undoes that. A program calls it first in its main function.
func DieWithParent() error {
	parent := os.Getppid()
	if unix.Gettid() != os.Getpid() { // the setting is lost with the thread, and only the first one never ends
		runtime.LockOSThread()
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("proctree: set PR_SET_PDEATHSIG: %w", err)
	}
	if os.Getppid() != parent { // it ended before the line above
		return unix.Kill(os.Getpid(), unix.SIGKILL)
	}
	return nil
}
