package controller

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// fast makes requests to the management and workload clusters a matter of the servers, not of the clients' limits. Both managers log as
// little as they do by default.
func fast() []string {
	return []string{
		"--kube-api-qps=5000", "--kube-api-burst=10000", "--clustercache-client-qps=5000", "--clustercache-client-burst=10000", "--v=0",
	}
}

// BenchmarkWorkers measures our manager beside the kubeadm bootstrap provider of Cluster API: the time from the moment at which
// the machines of a cluster may be made to the last of their data, the manager's processor time, its requests and its memory.
// Ours then makes the data of one more machine beside all that it has, and starts again. The servers of the provider are gone when
// ours is measured: with 10,000 machines they have half of the memory of the machine.
func BenchmarkWorkers(b *testing.B) {
	var floor cost
	b.Run("cabpk", func(b *testing.B) {
		for b.Loop() {
			floor = measure(b, "capi-kubeadm-bootstrap-manager", kubeadmConfig(), func(c *management.Cluster, t testing.TB) *management.Process {
				return c.KubeadmBootstrapWith(t, fast()...)
			})
		}
	})
	b.Run("beside", func(b *testing.B) {
		for b.Loop() {
			ours := measure(b, account, ourConfig(), nil)
			for unit, value := range map[string]float64{
				"cabpk-wall-ms": floor.wall, "wall-ms": ours.wall, "cabpk-cpu-ms": floor.cpu, "cpu-ms": ours.cpu,
				"cabpk-requests": floor.requests, "requests": ours.requests, "cabpk-RSS-MiB": floor.memory, "RSS-MiB": ours.memory,
				"one-wall-ms": ours.one, "restart-wall-ms": ours.restart,
			} {
				b.ReportMetric(value, unit)
			}
		}
	})
}

type cost struct{ wall, cpu, requests, memory, one, restart float64 }

func ourConfig() *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetGroupVersionKind(bootstrap.GroupVersion().WithKind(bootstrap.KindMachineBootstrapConfig))
	o.Object["spec"] = map[string]any{"documents": []any{map[string]any{
		"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "KubernetesNode", "name": "node", "spec": map[string]any{"provider": "kubeadm"},
	}}}
	return &o
}

func kubeadmConfig() *unstructured.Unstructured {
	var o unstructured.Unstructured
	o.SetAPIVersion("bootstrap.cluster.x-k8s.io/v1beta2")
	o.SetKind("KubeadmConfig")
	o.Object["spec"] = map[string]any{"joinConfiguration": map[string]any{
		"nodeRegistration": map[string]any{"criSocket": "unix:///run/containerd/containerd.sock"},
	}}
	return &o
}

// measure runs one provider; nil is ours. The values for a worker are the values of all, divided by their number.
func measure(b *testing.B, user string, config *unstructured.Unstructured, provide func(*management.Cluster, testing.TB) *management.Process) cost {
	b.Helper()
	s := &scale{rig: prepared(b, management.Start(b)), name: "scale", count: *machines, clusters: 1}
	s.withoutAdmission(b, s.Core(b))
	var p *management.Process
	if provide != nil {
		p = provide(s.Cluster, b)
	} else {
		s.run(b, fast()...)
		p = s.manager
	}
	// Its Cluster is older than a second, the interval at which Cluster API's connections react to changes of one Cluster.
	one := &scale{rig: s.rig, name: "one", count: 1, clusters: 1}
	last := one.gated(b, config)
	waiting := s.gated(b, config)
	before, mark := processor(b, p), len(s.Audit(b))
	wall := s.pass(b, waiting, config)
	untilIdle(b, p)
	spent := processor(b, p) - before
	requests := 0
	for _, q := range s.Audit(b)[mark:] {
		if bytes.Contains([]byte(q.User.Name), []byte(user)) || q.User.Name == "administrator" && q.Object.Namespace == "kube-system" {
			requests++
		}
	}
	n := float64(s.count)
	b.Logf("%s: %d machines in %s, %.1f machines/s", user, s.count, wall, n/wall.Seconds())
	all := cost{
		wall: float64(wall.Milliseconds()), cpu: float64(spent.Microseconds()) / 1000 / n, requests: float64(requests) / n,
		memory: resident(b, p),
	}
	if provide == nil {
		all.one = float64(one.pass(b, last, config).Milliseconds())
		all.restart = s.restarted(b)
	}
	return all
}

// gated makes Machines and configs of a Cluster that are not made data for yet.
func (s *scale) gated(b *testing.B, config *unstructured.Unstructured) []*clusterv1.Cluster {
	b.Helper()
	var all []*clusterv1.Cluster
	for i := range s.clusters {
		all = append(all, s.newCluster(b, s.cluster(i)))
	}
	s.machines(b, config)
	return all
}

// pass lets the data be made, and is the time until all is there.
func (s *scale) pass(b *testing.B, all []*clusterv1.Cluster, config *unstructured.Unstructured) time.Duration {
	b.Helper()
	began := time.Now()
	for _, c := range all {
		s.open(b, c)
	}
	s.created(b, config)
	return time.Since(began)
}

// restarted is how many milliseconds a manager that starts takes until it has reconciled every config. It writes nothing.
func (s *scale) restarted(b *testing.B) float64 {
	b.Helper()
	s.manager.Kill(b)
	mark := len(s.Audit(b))
	began := time.Now()
	s.again(b, fast()...)
	s.awaitManager(b)
	require.Eventually(b, func() bool { return s.reconciled(b) > s.count }, limit, 100*time.Millisecond)
	took := time.Since(began)
	for _, q := range s.Audit(b)[mark:] {
		if q.User.Name == account {
			require.Contains(b, []string{"get", "list", "watch"}, q.Verb, "%s", q.URI)
		}
	}
	return float64(took.Milliseconds())
}

// untilIdle waits until a manager has nothing left to do: what it does after the last data belongs to the data. A manager that leaves more
// for later is not a faster one.
func untilIdle(b *testing.B, p *management.Process) {
	b.Helper()
	const idle = 20 * time.Millisecond
	for spent := -idle; processor(b, p)-spent >= idle; time.Sleep(time.Second) {
		spent = processor(b, p)
	}
}

// processor is the processor time that a process has used.
func processor(t testing.TB, p *management.Process) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID()))
	require.NoError(t, err)
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime of proc(5)
		n, err := strconv.ParseInt(string(field), 10, 64)
		require.NoError(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// resident is the most memory that a process has had, in MiB.
func resident(t testing.TB, p *management.Process) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		if fields := bytes.Fields(line); len(fields) == 3 && string(fields[0]) == "VmHWM:" {
			kib, err := strconv.ParseFloat(string(fields[1]), 64)
			require.NoError(t, err)
			return kib / 1024
		}
	}
	t.Fatal("the process has no VmHWM")
	return 0
}
