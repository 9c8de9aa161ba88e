package infrastructure

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/demo"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestDemo is make demo-cluster.
func TestDemo(t *testing.T) {
	needs.Campaign(t)
	i := demo.OnSignal(t)
	demo.Say("A management cluster starts: etcd, an API server, the core provider of Cluster API and the controller of this project.")
	r := start(i, 2)
	demo.Say("kubectl apply -f examples/cluster-api/workers.yaml -f examples/cluster-api/standalone.yaml\n" +
		"   with one control plane and one worker; the machines are containers without a registry, which needs some changes.")
	r.apply(i, small(i)...)
	demo.Say("clusterctl describe cluster alone, when it changes:")
	r.narrate(i)
	demo.Say("The nodes of the new cluster, as its API server lists them:")
	r.list(i)
	for _, m := range r.running(i, 2) {
		name := m.Spec.InfrastructureRef.Name
		demo.Say(name + "# machineadm status")
		said, err := r.Node(name).Exec(i.Context(), "machineadm", "status")
		require.NoError(i, err)
		fmt.Print(said.Stdout)
	}
	demo.Say("kubectl delete cluster alone: the machines go with it.")
	r.deleted(i)
}

// narrate prints the tree of the Cluster whenever the phase of a Machine has changed, until both run.
func (r *rig) narrate(t testing.TB) {
	t.Helper()
	shown := ""
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		phases, running := "", 0
		for i := range machines.Items {
			phases += machines.Items[i].Name + " " + machines.Items[i].Status.Phase + "\n"
			if machines.Items[i].Status.GetTypedPhase() == clusterv1.MachinePhaseRunning {
				running++
			}
		}
		if phases != shown {
			shown = phases
			describe := exec.CommandContext(t.Context(), cluster.Program(t, "clusterctl"), "describe", "cluster", "alone", "--kubeconfig", r.Kubeconfig)
			describe.Env = append(os.Environ(), "HOME="+r.Dir, "CLUSTERCTL_DISABLE_VERSIONCHECK=true")
			tree, err := describe.Output()
			if err != nil {
				return err
			}
			fmt.Printf("\n%s", tree)
		}
		if running != 2 || len(machines.Items) != 2 {
			return fmt.Errorf("%d Machines run:\n%s", running, phases)
		}
		return nil
	})
}

// list prints the nodes of the cluster.
func (r *rig) list(t testing.TB) {
	t.Helper()
	var list corev1.NodeList
	require.NoError(t, r.Workload(t, "default", "alone").List(t.Context(), &list))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tPROVIDER ID\tKUBELET\tRUNTIME")
	for i := range list.Items {
		n := &list.Items[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", n.Name, n.Spec.ProviderID, n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion)
	}
	require.NoError(t, table.Flush())
}

// TestDemoInterrupted: Ctrl-C while a machine boots removes everything.
func TestDemoInterrupted(t *testing.T) {
	needs.Campaign(t)
	needs.Root(t)
	interrupted := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestDemo$", "-test.v")
	out, err := interrupted.StdoutPipe()
	require.NoError(t, err)
	interrupted.Stderr = interrupted.Stdout
	require.NoError(t, interrupted.Start())
	ofDemo := fmt.Sprintf("machineadm-node-%d-", interrupted.Process.Pid)
	var shown []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if shown = append(shown, lines.Text()); strings.Contains(lines.Text(), "alone-0 is on as") {
			break
		}
	}
	require.NoError(t, interrupted.Process.Signal(os.Interrupt))
	for lines.Scan() {
		shown = append(shown, lines.Text())
	}
	require.Error(t, interrupted.Wait())
	require.Contains(t, shown, "interrupted: removing the machines")
	nodestest.Eventually(t, "the processes to end", func() bool { return len(nodestest.Processes(t, ofDemo)) == 0 })
	require.Empty(t, nodestest.Traces(t, ofDemo), strings.Join(shown, "\n"))
}
