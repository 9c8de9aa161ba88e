package controller

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
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
// the other: processor time for a machine, and memory. In the first, the data of all machines is read, as an infrastructure provider
// does. In the second, all machines fetch their documents, all report, and one reports again. The processor time of a request is with the
// reconciliations that follow.
func BenchmarkStored(b *testing.B) {
	var plain, read cost
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			var s *scale
			s, plain = stored(b, false)
			read = each(b, s, s.made(b), func(data corev1.Secret) { s.secret(b, data.Namespace, data.Name) })
		}
	})
	b.Run("served", func(b *testing.B) {
		for b.Loop() {
			s, made := stored(b, true)
			all := s.references(b)
			fetched := each(b, s, all, func(m *served) { m.askUntil(b, http.StatusOK, http.MethodGet, m.spec.URI, 0, "") })
			reported := each(b, s, all, func(m *served) { m.report(b, 1) })
			s.succeed(b, s.count)
			all[0].report(b, 2)
			began := time.Now()
			s.succeed(b, s.count-1)
			for unit, value := range map[string]float64{
				"plain-cpu-ms": plain.cpu, "cpu-ms": made.cpu, "plain-RSS-MiB": plain.memory, "made-RSS-MiB": made.memory, "RSS-MiB": resident(b, s.manager),
				"read-wall-ms": read.wall, "fetch-cpu-ms": fetched.cpu, "fetch-wall-ms": fetched.wall, "report-cpu-ms": reported.cpu,
				"report-wall-ms": reported.wall, "condition-wall-ms": float64(time.Since(began).Milliseconds()),
			} {
				b.ReportMetric(value, unit)
			}
		}
	})
}

// askUntil asks until the answer is the one that it wants. Like a machine, it comes again after a refusal that passes.
func (m *served) askUntil(t testing.TB, want int, method, url string, sequence uint64, body string) {
	t.Helper()
	for {
		a, err := m.send(t, method, url, m.bearer, sequence, body)
		pause := time.Second
		if err == nil {
			assert.NoError(t, a.Body.Close())
			if a.StatusCode != http.StatusTooManyRequests && a.StatusCode != http.StatusServiceUnavailable {
				assert.Equal(t, want, a.StatusCode, m.name)
				return
			}
			seconds, err := strconv.Atoi(a.Header.Get("Retry-After"))
			assert.NoError(t, err)
			pause = time.Duration(seconds) * time.Second
		}
		select {
		case <-time.After(pause):
		case <-t.Context().Done():
			return
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
	m.askUntil(t, http.StatusNoContent, http.MethodPost, m.spec.Report.URI, sequence, text)
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
	untilIdle(b, s.manager)
	return s, s.since(b, before, wall)
}

func (s *scale) since(b *testing.B, before, wall time.Duration) cost {
	b.Helper()
	spent := processor(b, s.manager) - before
	return cost{wall: float64(wall.Milliseconds()), cpu: float64(spent.Microseconds()) / 1000 / float64(s.count), memory: resident(b, s.manager)}
}

// made is the data of all machines.
func (s *scale) made(b *testing.B) []corev1.Secret {
	b.Helper()
	var secrets corev1.SecretList
	require.NoError(b, s.List(b.Context(), &secrets, client.InNamespace("default")))
	all := slices.DeleteFunc(secrets.Items, func(data corev1.Secret) bool { return !strings.HasSuffix(data.Name, dataSuffix) })
	require.Len(b, all, s.count)
	return all
}

// references reads the data of all machines, which come from a few addresses.
func (s *scale) references(b *testing.B) []*served {
	b.Helper()
	var all []*served
	for i, data := range s.made(b) {
		m := read(b, strings.TrimSuffix(data.Name, dataSuffix), &data)
		if transport, ok := m.client.Transport.(*http.Transport); assert.True(b, ok) {
			from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%addresses))}}
			transport.DialContext = from.DialContext
		}
		all = append(all, m)
	}
	return all
}

// atOnce machines act at once, from so many addresses: a manager sees the machines of a network as one.
const atOnce, addresses = 1000, 4

// each does something for all machines, and waits until the manager has nothing left to do.
func each[T any](b *testing.B, s *scale, all []T, do func(T)) cost {
	b.Helper()
	before, began := processor(b, s.manager), time.Now()
	next := make(chan T)
	var group sync.WaitGroup
	for range atOnce {
		group.Go(func() {
			for machine := range next {
				do(machine)
			}
		})
	}
	for _, machine := range all {
		next <- machine
	}
	close(next)
	group.Wait()
	wall := time.Since(began)
	untilIdle(b, s.manager)
	return s.since(b, before, wall)
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
