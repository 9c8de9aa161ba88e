package proctree

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/machineadm/machineadm/internal/proctree/guard"
)

// TestGuardComesEarly: what a guard costs is what is initialised before it. This test binary has packages os, fmt, net and
// testing, as each program that starts a guard has.
func TestGuardComesEarly(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe")
	cmd.Env = []string{guard.Variable + "=", "GODEBUG=inittrace=1"}
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != 0 && got != 126 { // it has no socket
		t.Errorf("the status is %d (%v), a guard's is expected", got, err)
	}
	before := 0
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "init" {
			t.Fatalf("the runtime says %q, which is not understood", line)
		}
		before++
		for _, late := range []string{"os", "fmt", "net", "testing", "golang.org/x/sys/unix"} {
			if words[1] == late {
				t.Errorf("package %s is initialised before the guard runs", late)
			}
		}
	}
	if before == 0 {
		t.Error("the runtime says nothing of what it initialises")
	}
}
