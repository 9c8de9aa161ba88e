package nodes_test

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

func TestStopLeavesNothing(t *testing.T) {
	t.Parallel()
	n := nodes.Boot(t, nodes.Options{Suite: nodes.Bookworm})
	n.MustExec(t, "sh", "-c", "setsid sleep 600 >/dev/null 2>&1 &")
	network := netNS(t, n)
	if len(nodestest.Traces(t, n.Name())) == 0 || len(holdersOf(t, n.Name(), network)) == 0 {
		t.Fatal("a running node leaves no traces: this test cannot see them")
	}
	began := time.Now()
	if err := n.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %s", time.Since(began).Round(time.Millisecond))
	wantNothing(t, n.Name(), network)
	if _, err := n.Exec(t.Context(), "true"); err == nil {
		t.Error("a stopped node still runs commands")
	}
}

const (
	// childEnv makes TestChild, in a process of its own, end in the way that it names.
	childEnv = "MACHINEADM_NODES_TEST_CHILD"
	// bootEnv is the limit of a boot that does not end.
	bootEnv = "MACHINEADM_NODES_TEST_BOOT"
)

// TestChild is the other process of the tests below.
func TestChild(t *testing.T) {
	how := os.Getenv(childEnv)
	if how == "" {
		return
	}
	options := nodes.Options{Suite: nodes.Trixie, Network: nodes.NewNetwork(t, "node", "server")}
	options.Network.ListenPacket(t, "server", 7)
	switch how {
	case "unprepared":
		options.Prepare = func(string) error { return errors.New("as wanted") }
	case "never up":
		var err error
		if options.BootTimeout, err = time.ParseDuration(os.Getenv(bootEnv)); err != nil {
			t.Fatal(err)
		}
		options.Prepare = func(root string) error {
			// Among the first units, so that it is on the console soon.
			unit := "[Unit]\nDefaultDependencies=no\n[Service]\nType=oneshot\nExecStart=/bin/sleep infinity\n"
			if err := os.WriteFile(filepath.Join(root, "etc/systemd/system/hung.service"), []byte(unit), 0o644); err != nil {
				return err
			}
			wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
			if err := os.MkdirAll(wants, 0o755); err != nil {
				return err
			}
			return os.Symlink("/etc/systemd/system/hung.service", filepath.Join(wants, "hung.service"))
		}
	}
	n := nodes.Boot(t, options)
	fmt.Printf("child: %s\n", netNS(t, n))
	switch how {
	case "fail":
		t.Fatal("as wanted")
	case "panic":
		panic("as wanted")
	case "killed":
		select {}
	}
}

func TestFailureLeavesNothing(t *testing.T) {
	t.Parallel()
	require.Root(t)
	for _, how := range []string{"fail", "panic"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			c := startChild(t, how)
			rest := c.wait(t)
			wantNothing(t, c.name, c.network)
			if how == "fail" && !strings.Contains(rest, "Reached target multi-user.target") {
				t.Errorf("the failed test does not show the console:\n%s", rest)
			}
		})
	}
}

// A Boot that fails reports the reason, shows the console and leaves nothing.
func TestFailedBootLeavesNothing(t *testing.T) {
	t.Parallel()
	require.Root(t)
	for how, wants := range map[string][]string{
		"unprepared": {"prepare the node's files: as wanted"},
		"never up":   {"waiting for the end of the boot: context deadline exceeded", "console of", "hung.service"},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			// On a busy machine the first limit may end before the unit is on the console.
			for limit := 10 * time.Second; ; limit *= 2 {
				out := failedBoot(t, how, limit)
				missing := slices.IndexFunc(wants, func(want string) bool { return !strings.Contains(out, want) })
				if missing < 0 {
					break
				}
				if limit >= require.Timeout(time.Minute) {
					t.Fatalf("the child does not say %q:\n%s", wants[missing], out)
				}
			}
		})
	}
}

// failedBoot runs a child whose boot fails, checks that it leaves nothing, and returns its output.
func failedBoot(t *testing.T, how string, limit time.Duration) string {
	t.Helper()
	cmd := childCommand(t, how)
	cmd.Env = append(cmd.Env, bootEnv+"="+limit.String())
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Error("the child succeeded")
	}
	ofChild := ofProcess(cmd.Process.Pid)
	nodestest.Eventually(t, "the node's processes to end", func() bool { return len(nodestest.Processes(t, ofChild)) == 0 })
	if traces := nodestest.Traces(t, ofChild); len(traces) > 0 {
		t.Errorf("left: %q", traces)
	}
	return string(out)
}

// A test process that is killed takes its node's processes with it; the next boot cleans up the rest.
func TestNextBootCleansUpAfterAKill(t *testing.T) {
	t.Parallel()
	require.Root(t)
	bystander := nodes.Boot(t, nodes.Options{Suite: nodes.Trixie})
	c := startChild(t, "killed")
	release := nodestest.HoldCleanUps(t)
	if err := c.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.wait(t)
	nodestest.Eventually(t, "the killed test's node to die", func() bool { return len(nodestest.Processes(t, c.name)) == 0 })
	if mounted := namespacesOf(t, c.name); len(mounted) != 2 {
		t.Fatalf("a killed test leaves the network namespaces %q, want the node's and its network's", mounted)
	}
	release()
	nodes.Boot(t, nodes.Options{Suite: nodes.Trixie, NoWait: true})
	wantNothing(t, c.name, c.network)
	bystander.MustExec(t, "true")
}

type child struct {
	cmd           *exec.Cmd
	out           *bufio.Reader
	name, network string // name is part of the names of its node and of its network
}

func childCommand(t *testing.T, how string) *exec.Cmd {
	t.Helper()
	require.Tier(t, require.System)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), childEnv+"="+how)
	return cmd
}

func startChild(t *testing.T, how string) *child {
	t.Helper()
	cmd := childCommand(t, how)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd: cmd, out: bufio.NewReader(pipe), name: ofProcess(cmd.Process.Pid)}
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			t.Fatalf("the child ended before its node was up: %v %v", err, cmd.Wait())
		}
		if _, err := fmt.Sscanf(line, "child: %s", &c.network); err == nil {
			return c
		}
	}
}

// ofProcess is part of the name of everything that a test process boots.
func ofProcess(pid int) string { return fmt.Sprintf("machineadm-node-%d-", pid) }

// wait returns the rest of the child's output. Every child fails, as requested.
func (c *child) wait(t *testing.T) string {
	t.Helper()
	var rest strings.Builder
	if _, err := c.out.WriteTo(&rest); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Wait(); err == nil {
		t.Errorf("the child succeeded:\n%s", rest.String())
	}
	return rest.String()
}
