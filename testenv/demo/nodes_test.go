package demo

import (
	"bufio"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/nodes"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
	"github.com/machineadm/machineadm/testenv/tools"
)

const clusterStream = "/etc/machineadm/node.yaml"

// What the examples need on a container in the place of a machine: its control groups are not systemd's to make, and it has
// no registry, but the images. Kubernetes has the version that is built for all tests.
const (
	runtimeOfNode = "  cgroupDriver: cgroupfs\n  sandboxImage: " + cluster.ImageRepository + "/pause:3.10.2\n"
	ignored       = "  ignorePreflightErrors: [" + cluster.IgnoredPreflightErrors + "]\n"
)

var (
	version             = [2]string{"  kubernetesVersion: v1.37.1\n", "  kubernetesVersion: " + cluster.V136.Patch() + "\n"}
	controlPlaneChanges = [][2]string{
		version,
		{"  cgroupDriver: systemd # as the kubelet of kubeadm\n", runtimeOfNode},
		{"    podSubnets: [10.244.0.0/16]\n", "    podSubnets: [10.244.0.0/16]\n    imageRepository: " + cluster.ImageRepository + "\n"},
		{"  discovery:\n", ignored + "  kubelet: {cgroupDriver: cgroupfs, config: {failCgroupV1: false, failSwapOn: false}}\n  discovery:\n"},
	}
	workerChanges = [][2]string{
		version,
		{"  cgroupDriver: systemd\n", runtimeOfNode},
		{"  kubelet:\n", ignored + "  kubelet:\n    cgroupDriver: cgroupfs\n"},
	}
)

const exampleHash = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestNodes makes a control plane and a worker with the streams of the examples, and shows every step.
func TestNodes(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.Cluster)
	i := OnSignal(t)
	Say("Two machines are booted in containers (systemd-nspawn), with containerd, kubeadm and a kubelet that waits for it.")
	network := nodes.NewNetwork(i, "control", "worker")
	prepare := nodes.InOrder(buildFor(i), endpoint(network.Address("control")))
	control := cluster.Boot(i, network, "control", true, prepare)
	Say("The stream of the control plane is examples/control-plane.yaml with these changes for a container without a registry, and for the version that is built:")
	adapt(i, control, "control-plane.yaml", controlPlaneChanges)
	Say("What would change? Exit code 10: something would.")
	show(i, control, 10, "machineadm", "plan", "--path", clusterStream)
	Say("One command makes the machine a control plane.")
	show(i, control, 0, "machineadm", "apply", "--path", clusterStream)
	show(i, control, 0, "machineadm", "status")

	worker := cluster.Boot(i, network, "worker", false, prepare)
	Say("The stream of the worker is examples/worker.yaml, likewise, with the hash of the new cluster's certificate authority:")
	adapt(i, worker, "worker.yaml", append([][2]string{{exampleHash, cluster.CACertHash(i, control)}}, workerChanges...))
	show(i, worker, 10, "machineadm", "plan", "--path", clusterStream)
	Say("The same command makes this machine a worker.")
	show(i, worker, 0, "machineadm", "apply", "--path", clusterStream)
	show(i, worker, 0, "machineadm", "status")
	Say("Applied again, the stream changes nothing.")
	require.Contains(i, show(i, worker, 0, "machineadm", "apply", "--path", clusterStream), "3 unchanged")

	cluster.AwaitReady(i, control, "/api/v1/nodes", 2)
	Say("The nodes of the cluster, as its API server lists them:")
	require.Equal(i, 2, list(i, control))
	Say("Both machines are removed now.")
}

// buildFor builds the host and the plugins of the examples, and returns the step that installs them in a machine.
func buildFor(t testing.TB) func(root string) error {
	t.Helper()
	const plugins = "usr/libexec/machineadm/machineadm-"
	bin := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), bin, map[string]string{
		"machineadm": "host/cmd/machineadm", "procfs": "plugins/sysctl/procfs",
		"containerd": "plugins/container-runtime/containerd", "kubeadm": "plugins/kubernetes-node/kubeadm",
	}))
	return func(root string) error {
		for from, to := range map[string]string{
			"machineadm": "usr/bin/machineadm", "procfs": plugins + "sysctl-plugin-procfs",
			"containerd": plugins + "container-runtime-plugin-containerd", "kubeadm": plugins + "kubernetes-node-plugin-kubeadm",
		} {
			program, err := os.ReadFile(filepath.Join(bin, from))
			if err == nil {
				err = os.MkdirAll(filepath.Join(root, filepath.Dir(to)), 0o755)
			}
			if err == nil {
				err = os.WriteFile(filepath.Join(root, to), program, 0o755) //nolint:gosec // a program
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
}

// endpoint returns the step that makes the name of the examples' cluster that of an address.
func endpoint(address netip.Addr) func(root string) error {
	return func(root string) error {
		hosts, err := os.OpenFile(filepath.Join(root, "etc/hosts"), os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(hosts, "%s api.example.com\n", address)
		return errors.Join(err, hosts.Close())
	}
}

// adapt gives a machine an example with other text in some places, and shows these.
func adapt(t testing.TB, n *nodes.Node, example string, changes [][2]string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("../../examples", example))
	require.NoError(t, err)
	text := string(data)
	for _, change := range changes {
		require.Equal(t, 1, strings.Count(text, change[0]), "%s has not %q once", example, change[0])
		text = strings.Replace(text, change[0], change[1], 1)
		for i, sign := range []string{"-", "+"} {
			fmt.Println("  " + sign + " " + strings.ReplaceAll(strings.TrimRight(change[i], "\n"), "\n", "\n  "+sign+" "))
		}
	}
	file := filepath.Join(t.TempDir(), example)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	require.NoError(t, n.CopyIn(t.Context(), file, clusterStream, 0o600))
}

// list prints the nodes of the cluster and counts them.
func list(t testing.TB, control *nodes.Node) int {
	t.Helper()
	var all struct {
		Items []struct {
			Metadata struct {
				Name   string            `json:"name"`
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Status struct {
				Addresses []struct {
					Address string `json:"address"`
				} `json:"addresses"`
				NodeInfo struct {
					KubeletVersion          string `json:"kubeletVersion"`
					ContainerRuntimeVersion string `json:"containerRuntimeVersion"`
				} `json:"nodeInfo"`
			} `json:"status"`
		} `json:"items"`
	}
	require.NoError(t, cluster.Get(t, control, "/api/v1/nodes", &all))
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tSTATUS\tROLE\tADDRESS\tKUBELET\tRUNTIME")
	for _, n := range all.Items {
		role := "worker"
		if _, ok := n.Metadata.Labels["node-role.kubernetes.io/control-plane"]; ok {
			role = "control-plane"
		}
		fmt.Fprintf(table, "%s\tReady\t%s\t%s\t%s\t%s\n", n.Metadata.Name, role, n.Status.Addresses[0].Address,
			n.Status.NodeInfo.KubeletVersion, n.Status.NodeInfo.ContainerRuntimeVersion)
	}
	require.NoError(t, table.Flush())
	return len(all.Items)
}

// TestNodesInterrupted: Ctrl-C while kubeadm is at work removes the machines.
func TestNodesInterrupted(t *testing.T) {
	t.Parallel()
	needs.Tier(t, needs.Cluster)
	needs.Root(t)
	demo := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNodes$", "-test.v")
	out, err := demo.StdoutPipe()
	require.NoError(t, err)
	demo.Stderr = demo.Stdout
	require.NoError(t, demo.Start())
	ofDemo := fmt.Sprintf("machineadm-node-%d-", demo.Process.Pid)
	var shown []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if shown = append(shown, lines.Text()); strings.HasPrefix(lines.Text(), "# machineadm apply") {
			break
		}
	}
	nodestest.Eventually(t, "kubeadm to work", func() bool {
		return slices.ContainsFunc(nodestest.Processes(t, ofDemo), func(process string) bool {
			name, err := os.ReadFile(process + "/comm")
			return err == nil && string(name) == "kubeadm\n"
		})
	})
	require.NoError(t, demo.Process.Signal(os.Interrupt))
	for lines.Scan() {
		shown = append(shown, lines.Text())
	}
	require.Error(t, demo.Wait())
	require.Contains(t, shown, "interrupted: removing the machines")
	require.Less(t, len(shown), 1000)
	nodestest.Eventually(t, "the processes to end", func() bool { return len(nodestest.Processes(t, ofDemo)) == 0 })
	require.Empty(t, nodestest.Traces(t, ofDemo), strings.Join(shown, "\n"))
}
