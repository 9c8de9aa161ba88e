package serve

import (
	"context"
	"fmt"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics count what clients ask for. Every label has few values.
type metrics struct {
	requests, bytes, refused *prometheus.CounterVec
}

// Directions of bytes, and the limits that a refused connection exceeds.
const (
	received = "received"
	sent     = "sent"

	tooMany        = "all"
	tooManyAddress = "address"
)

func newMetrics(registry prometheus.Registerer, certificates *Certificates) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_server_requests_total",
			Help: "Requests of machines, by route and HTTP status.",
		}, []string{"route", "code"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_server_bytes_total",
			Help: "Bytes of bodies that were received from machines and sent to them.",
		}, []string{"route", "direction"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_server_refused_connections_total",
			Help: "Connections that were closed unread, because too many were open in all or from one address.",
		}, []string{"limit"}),
	}
	// It renews the certificate, too, so that what is wrong with it does not wait for a machine.
	expiry := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "machineadm_server_certificate_expiry_timestamp_seconds",
		Help: "Unix time at which the certificate for machines ends.",
	}, func() float64 { return float64(certificates.newest(context.Background()).pair.Leaf.NotAfter.Unix()) })
	for _, c := range []prometheus.Collector{m.requests, m.bytes, m.refused, expiry} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register a metric: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) request(route string, code int) {
	m.requests.WithLabelValues(route, strconv.Itoa(code)).Inc()
}
