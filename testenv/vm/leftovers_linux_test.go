package vm

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// childEnv names the way in which TestChild, in a process of its own, ends.
const childEnv = "MACHINEADM_VM_TEST_CHILD"

// TestChild is the other process of TestEndOfTheTest.
func TestChild(t *testing.T) {
	how := os.Getenv(childEnv)
	if how == "" {
		return
	}
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm, VM: true, NoWait: true})
	// The command's end is the machine's; a killed test prints nothing.
	_, _ = fmt.Fprintf(os.Stdout, "child: %s\n", n.Name())
	if how == "fails" {
		t.Fatal("as wanted")
	}
	select {}
}

// TestEndOfTheTest: a virtual machine ends with its test, however that ends, and leaves nothing. A killed test leaves no
// process; the next boot of any node removes its files.
func TestEndOfTheTest(t *testing.T) {
	needs.Tier(t, needs.VM)
	needs.Campaign(t) // of the test environment alone
	for _, how := range []string{"fails", "is killed"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
			child.Env = append(os.Environ(), childEnv+"="+how)
			pipe, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			out := bufio.NewReader(pipe)
			name := nameOf(t, child, out)
			release := func() {}
			if how == "is killed" {
				release = nodestest.HoldCleanUps(t)
				if len(nodestest.Processes(t, name)) == 0 {
					t.Fatal("a running machine has no process: this test cannot see it")
				}
				if err := child.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			var rest strings.Builder
			if _, err := out.WriteTo(&rest); err != nil {
				t.Fatal(err)
			}
			if err := child.Wait(); err == nil {
				t.Errorf("the child succeeded:\n%s", rest.String())
			}
			nodestest.Eventually(t, "qemu to end", func() bool { return len(nodestest.Processes(t, name)) == 0 })
			if how == "is killed" {
				release()
				nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, NoWait: true}) // a container, which boots sooner
			} else if !strings.Contains(rest.String(), "systemd[1]") {
				t.Errorf("the failed test does not show the console:\n%s", rest.String())
			}
			if left := nodestest.Traces(t, name); len(left) > 0 {
				t.Errorf("left of %s:\n%s", name, strings.Join(left, "\n"))
			}
		})
	}
}

func nameOf(t *testing.T, child *exec.Cmd, out *bufio.Reader) string {
	t.Helper()
	var said strings.Builder
	for {
		line, err := out.ReadString('\n')
		said.WriteString(line)
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "child: "); ok {
			return name
		}
		if err != nil {
			t.Fatalf("the child ended before its machine was up: %v %v\n%s", err, child.Wait(), said.String())
		}
	}
}
