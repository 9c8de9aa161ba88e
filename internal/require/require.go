// Package require names what a test needs of the machine. What is missing skips the test with its reason,
// except under CI=true, where a missing prerequisite is a failure: a suite that silently did not run proves nothing.
// It also builds the programs that a test runs.
package require

import (
	"os"
	"os/exec"
	"runtime"
	"testing"
)

// Linux ends the test on another operating system.
func Linux(t testing.TB) {
	t.Helper()
	if runtime.GOOS != "linux" {
		Missing(t, "needs Linux, this is "+runtime.GOOS)
	}
}

// Root ends the test unless it runs as root on Linux.
func Root(t testing.TB) {
	t.Helper()
	Linux(t)
	if os.Geteuid() != 0 {
		Missing(t, "needs root")
	}
}

// Tool ends the test unless the program is on PATH, and returns where it is.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, "needs the program "+name+" (make installs it on Debian as root, see testenv/deps/packages)")
	}
	return path
}

// Missing skips the test with the reason, or fails it under CI=true.
func Missing(t testing.TB, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("missing prerequisite under CI: %s", reason)
	}
	if err := Record("missing", reason); err != nil {
		t.Fatal(err)
	}
	t.Skip(reason)
}
