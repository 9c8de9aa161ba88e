package controller

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// metrics count what a manager does. No label has the name of an object, so that their number does not grow with the machines.
type metrics struct {
	age, rendering prometheus.Histogram
	// bytes has no size of the data, which is compressed together with secret values.
	bytes         *prometheus.HistogramVec
	transitions   *prometheus.CounterVec
	outcomes      *prometheus.CounterVec
	tokens        *prometheus.CounterVec
	eventsDropped prometheus.Counter
}

// What happens to a bootstrap token.
const (
	tokenCreated   = "created"
	tokenRenewed   = "renewed"
	tokenWithdrawn = "withdrawn"
)

func newMetrics(registry prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		age: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "machineadm_bootstrap_data_age_seconds",
			Help:    "Time from the creation of a MachineBootstrapConfig to its data.",
			Buckets: []float64{0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800},
		}),
		rendering: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "machineadm_bootstrap_data_rendering_seconds",
			Help:    "Time to make the data of a config, with the requests for its inputs.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2, 14),
		}),
		bytes: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "machineadm_bootstrap_documents_bytes",
			Help:    "Size of the documents of a config, without the values of Secrets.",
			Buckets: prometheus.ExponentialBuckets(1024, 2, 11),
		}, []string{"type"}),
		transitions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_bootstrap_condition_transitions_total",
			Help: "Transitions of the condition Ready, by its new status and reason.",
		}, []string{"status", "reason"}),
		outcomes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_bootstrap_outcomes_total",
			Help: "Transitions of the condition BootstrapSucceeded, by its new status and reason.",
		}, []string{"status", "reason"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "machineadm_bootstrap_tokens_total",
			Help: "Bootstrap tokens that were created, renewed and withdrawn.",
		}, []string{"action"}),
		eventsDropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "machineadm_bootstrap_events_dropped_total",
			Help: "Events that were not written, because too many waited or the API server refused them.",
		}),
	}
	for _, c := range []prometheus.Collector{m.age, m.rendering, m.bytes, m.transitions, m.outcomes, m.tokens, m.eventsDropped} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register a metric: %w", err)
		}
	}
	return m, nil
}

// made counts data that was made.
func (m *metrics) made(config *bootstrap.MachineBootstrapConfig, bytes int, began, now time.Time) {
	kind := config.Spec.Format.Type
	if kind == "" {
		kind = bootstrap.FormatCloudConfig
	}
	m.bytes.WithLabelValues(kind).Observe(float64(bytes))
	m.rendering.Observe(now.Sub(began).Seconds())
	m.age.Observe(now.Sub(config.CreationTimestamp.Time).Seconds())
}

// transition counts another status or reason of a condition.
func transition(of *prometheus.CounterVec, before, after *metav1.Condition) {
	if after != nil && (before == nil || before.Reason != after.Reason || before.Status != after.Status) {
		of.WithLabelValues(string(after.Status), after.Reason).Inc()
	}
}
