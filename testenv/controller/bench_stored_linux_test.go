package controller

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// BenchmarkStored measures the manager with documents in the data, and with documents that it serves, in two management clusters one after
// the other: processor time for a machine, and memory. Then all machines fetch their documents, all report, and one reports again.
func BenchmarkStored(b *testing.B) {
	for b.Loop() {
		_, plain := stored(b, false)
		s, made := stored(b, true)
		all := s.references(b)
		fetched := s.each(b, all, func(m *served) {
			status, _ := m.fetch(b)
			assert.Equal(b, http.StatusOK, status)
		})
		reported := s.each(b, all, func(m *served) { m.report(b, 1) })
		s.succeed(b, s.count)
		all[0].report(b, 2)
		began := time.Now()
		s.succeed(b, s.count-1)
		for unit, value := range map[string]float64{
			"plain-cpu-ms": plain.cpu, "cpu-ms": made.cpu, "plain-RSS-MiB": plain.memory, "RSS-MiB": resident(b, s.manager),
			"fetch-cpu-ms": fetched.cpu, "fetch-wall-ms": fetched.wall, "report-cpu-ms": reported.cpu, "report-wall-ms": reported.wall,
			"condition-wall-ms": float64(time.Since(began).Milliseconds()),
		} {
			b.ReportMetric(value, unit)
		}
	}
}

// report sends a success with an odd number, and a failure with an even one.
func (m *served) report(t testing.TB, sequence uint64) {
	t.Helper()
	text := body(t, report.RunSucceeded, "")
	if sequence%2 == 0 {
		text = body(t, report.RunFailed, "no route")
	}
	status, answer := http.StatusServiceUnavailable, ""
	for status == http.StatusServiceUnavailable { // a machine tries again
		status, answer = m.ask(t, http.MethodPost, m.spec.Report.URI, m.bearer, sequence, text)
	}
	assert.Equal(t, http.StatusNoContent, status, answer)
}

// stored lets the data of all machines be made by a manager of its own.
func stored(b *testing.B, serve bool) (*scale, cost) {
	b.Helper()
	s := &scale{rig: prepared(b, management.Start(b)), name: "scale", count: *machines, clusters: 1}
	s.withoutAdmission(b, s.Core(b))
	config, flags := ourConfig(), fast()
	spec, ok := config.Object["spec"].(map[string]any)
	require.True(b, ok)
	spec["format"] = map[string]any{"type": bootstrap.FormatPlain}
	if serve {
		address := s.Address(b)
		flags = append(flags, "--server-address="+address, "--server-url=https://"+address, "--leader-elect-namespace=machineadm-system")
		storage := made(bootstrap.GroupVersion().String(), bootstrap.KindMachineBootstrapStorage, "manager", map[string]any{"spec": map[string]any{"server": map[string]any{}}})
		storage.SetNamespace("default")
		require.NoError(b, s.Create(b.Context(), storage))
		spec["storageRef"] = map[string]any{"apiGroup": bootstrap.Group, "kind": bootstrap.KindMachineBootstrapStorage, "name": "manager"}
	}
	s.run(b, flags...)
	waiting := s.gated(b, config)
	before := processor(b, s.manager)
	wall := s.pass(b, waiting, config)
	return s, s.since(b, before, wall)
}

func (s *scale) since(b *testing.B, before, wall time.Duration) cost {
	b.Helper()
	spent := processor(b, s.manager) - before
	return cost{wall: float64(wall.Milliseconds()), cpu: float64(spent.Microseconds()) / 1000 / float64(s.count), memory: resident(b, s.manager)}
}

// references reads the data of all machines.
func (s *scale) references(b *testing.B) []*served {
	b.Helper()
	var secrets corev1.SecretList
	require.NoError(b, s.List(b.Context(), &secrets, client.InNamespace("default")))
	var all []*served
	for i := range secrets.Items {
		if name, ok := strings.CutSuffix(secrets.Items[i].Name, dataSuffix); ok {
			all = append(all, read(b, name, &secrets.Items[i]))
		}
	}
	require.Len(b, all, s.count)
	return all
}

// each does something for all machines, of which 64 act at once.
func (s *scale) each(b *testing.B, all []*served, do func(*served)) cost {
	b.Helper()
	before, began := processor(b, s.manager), time.Now()
	var group sync.WaitGroup
	for part := range slices.Chunk(all, (len(all)+63)/64) {
		group.Go(func() {
			for _, m := range part {
				do(m)
			}
		})
	}
	group.Wait()
	return s.since(b, before, time.Since(began))
}

// succeed waits until so many machines have succeeded.
func (s *scale) succeed(b *testing.B, want int) {
	b.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(b, s, limit, &configs, func() error {
		have := 0
		for i := range configs.Items {
			if meta.IsStatusConditionTrue(configs.Items[i].Status.Conditions, bootstrap.ConditionBootstrapSucceeded) {
				have++
			}
		}
		if have != want {
			return fmt.Errorf("%d machines have succeeded", have)
		}
		return nil
	}, client.InNamespace("default"))
}
