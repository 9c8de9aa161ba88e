package cli

import (
	"bufio"
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestAnUnforeseenEndIsNoExitCode: Go ends a program that panics, or is asked for its stacks, with 2, which the contract
// has for "nothing was changed".
func TestAnUnforeseenEndIsNoExitCode(t *testing.T) {
	b := newBench(t)
	b.noop("")
	path := b.stream(noopDoc("slow", "touch: [/one], apply: hang"))
	c := exec.Command(filepath.Join(built, hostBinary), b.flags("apply", "--root", b.root, "--path", path)...)
	var errOut bytes.Buffer
	c.Stderr = &errOut
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "doing: ") {
	}
	if err := c.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // to its end, before Wait closes it
	}
	_ = c.Wait() // the caller checks the result
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() || status.CoreDump() {
		t.Errorf("ended as %v, want by a signal and without a core dump", c.ProcessState)
	}
}
