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

// clusters is how many Clusters BenchmarkClusters has.
var clusters = flag.Int("clusters", 100, "Clusters of the benchmark")

// BenchmarkClusters measures our manager with connections to many API servers, those of Cluster API's in-memory provider: a control
// plane and a worker of each get their data and run.
func BenchmarkClusters(b *testing.B) {
	one, err := os.ReadFile("testdata/cluster.yaml")
	require.NoError(b, err)
	for b.Loop() {
		r := start(b, everything()...)
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
	}
}
