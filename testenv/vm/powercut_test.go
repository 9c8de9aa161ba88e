package vm

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/testenv/nodes"
)

// many is the number of documents of a stream that takes several seconds, so that the power cut comes in the middle.
const many = 12

const manyFile = "/etc/machineadm/many.yaml"

func manyStream() string {
	var b strings.Builder
	for i := range many {
		fmt.Fprintf(&b, "---\napiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: Sysctl\nmetadata: {name: cut-%02d}\nspec:\n"+
			"  modules: [%s]\n  parameters: {%s: %d}\n", i, cutModules()[i%len(cutModules())], cutKey(i), 100+i)
	}
	return b.String()
}

// cutKey names parameters that every kernel has and that keep any small number: six of each of two interfaces.
func cutKey(i int) string {
	names := []string{"app_solicit", "gc_stale_time", "locktime", "mcast_solicit", "proxy_qlen", "ucast_solicit"}
	return fmt.Sprintf("net.ipv4.neigh.%s.%s", []string{"default", "lo"}[i/len(names)], names[i%len(names)])
}

func cutModules() []string { return []string{"ip_vs", "veth", "macvlan"} }

// stopInTheMiddle waits until a run has reported so many changes, and stops it, so that it is still in the middle when the
// power goes.
const stopInTheMiddle = `
	until test "$(grep -c '"outcome": "Changed"' /run/machineadm/report.json 2>/dev/null)" -ge "$1"; do sleep 0.02; done
	pkill -STOP machineadm`

// powerCut: the power goes in the middle of a run, after so many changes. The machine comes up, no managed file is
// half-written, and one rerun completes all.
func powerCut(t *testing.T, n *nodes.Node, changes int) {
	if _, err := n.ExecInput(t.Context(), strings.NewReader(manyStream()), "sh", "-c", "umask 077; cat >"+manyFile+"; sync "+manyFile+" /etc/machineadm"); err != nil {
		t.Fatal(err)
	}
	n.MustExec(t, "rm", "-f", "/run/machineadm/report.json")
	ended := make(chan error, 1)
	go func() {
		r, err := n.Exec(context.WithoutCancel(t.Context()), "machineadm", "apply", "--path", manyFile)
		if err == nil {
			err = fmt.Errorf("the run ended by itself with %d: %s", r.ExitCode, r.Stderr)
		}
		ended <- err
	}()
	n.MustExec(t, "timeout", "120", "sh", "-c", stopInTheMiddle, "sh", fmt.Sprint(changes))
	n.Crash()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "the node is off") {
		t.Fatal(err)
	}
	if err := n.Reboot(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("up again in %s", n.BootTime().Round(time.Millisecond))
	whole(t, n)
	expect(t, n, report.ExitOK, "machineadm", "apply", "--path", manyFile)
	completed(t, n)
}

// whole: each managed file has the document's content or does not exist.
func whole(t *testing.T, n *nodes.Node) {
	t.Helper()
	found := 0
	for i := range many {
		for path, want := range map[string]string{
			fmt.Sprintf("/etc/sysctl.d/99-machineadm-cut-%02d.conf", i):    fmt.Sprintf("%s = %d", strings.ReplaceAll(cutKey(i), ".", "/"), 100+i),
			fmt.Sprintf("/etc/modules-load.d/machineadm-cut-%02d.conf", i): cutModules()[i%len(cutModules())],
		} {
			r, err := n.Exec(t.Context(), "tail", "-n", "1", path)
			if err != nil {
				t.Fatal(err)
			}
			if r.ExitCode != 0 {
				continue
			}
			found++
			if got := strings.TrimSpace(r.Stdout); got != want && strings.ReplaceAll(got, "/", ".") != strings.ReplaceAll(want, "/", ".") {
				t.Errorf("%s ends with %q, want %q", path, got, want)
			}
		}
	}
	if found == 0 || found == 2*many {
		t.Errorf("%d of %d files are there: the power did not go in the middle", found, 2*many)
	}
}

// completed: everything is as an undisturbed run leaves it.
func completed(t *testing.T, n *nodes.Node) {
	t.Helper()
	want := map[string]string{}
	for i := range many {
		want[strings.ReplaceAll(cutKey(i), ".", "/")] = fmt.Sprint(100 + i)
	}
	live(t, n, want, cutModules()...)
	r := lastReport(t, n)
	if r.Outcome != report.RunSucceeded || len(r.Documents) != many {
		t.Errorf("report: %+v", r)
	}
	if left := n.MustExec(t, "find", "/etc", "/var/lib/machineadm", "/run/machineadm", "-name", "*.machineadm-tmp*").Stdout; left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	out := expect(t, n, report.ExitOK, "machineadm", "plan", "--path", manyFile).Stdout
	if !strings.Contains(out, fmt.Sprintf("%d documents: 0 to change", many)) {
		t.Errorf("plan:\n%s", out)
	}
}
