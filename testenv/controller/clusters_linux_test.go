package controller

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/machineadm/machineadm/testenv/management"
)

// clusters is how many Clusters BenchmarkClusters has, and more the number of Machines that it then adds to them.
var (
	clusters = flag.Int("clusters", 100, "Clusters of the benchmark")
	more     = flag.Int("more", 0, "Machines that wait in these Clusters, besides those that run")
)

// BenchmarkClusters measures our manager with connections to many API servers, of Cluster API's in-memory provider: a control
// plane and a worker of each get their data and run. Further workers then get their data, and never become nodes.
func BenchmarkClusters(b *testing.B) {
	one, err := os.ReadFile("testdata/cluster.yaml")
	require.NoError(b, err)
	for b.Loop() {
		c := management.Start(b)
		core := c.Core(b)
		r := begin(b, c, everything()[1:]...)
		var all []byte
		for i := range *clusters {
			all = append(append(all, bytes.ReplaceAll(one, []byte("NAME"), fmt.Appendf(nil, "cluster-%03d", i))...), "\n---\n"...)
		}
		began := time.Now()
		r.Install(b, all)
		var machines clusterv1.MachineList
		management.Await(b, r, 20*time.Minute, &machines, func() error {
			running := 0
			for i := range machines.Items {
				if machines.Items[i].Status.NodeRef.IsDefined() {
					running++
				}
			}
			if want := 2 * *clusters; running != want {
				return fmt.Errorf("%d of %d Machines have a node", running, want)
			}
			return nil
		})
		n := float64(2 * *clusters)
		b.Logf("%d Clusters run after %s", *clusters, time.Since(began).Round(time.Second))
		b.ReportMetric(resident(b, r.manager), "RSS-MiB")
		b.ReportMetric(float64(processor(b, r.manager).Microseconds())/1000/n, "cpu-ms")
		if *more > 0 {
			s := &scale{rig: r, name: "cluster", count: *more, clusters: *clusters}
			s.withoutAdmission(b, core)
			s.machines(b, ourConfig())
			s.created(b, ourConfig())
			b.ReportMetric(resident(b, r.manager), "more-RSS-MiB")
			b.ReportMetric(s.restarted(b), "restart-wall-ms")
		}
	}
}
