package controller

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// unwritten is a recorder whose events stay in its queue.
func unwritten(t *testing.T) *recorder {
	t.Helper()
	m, err := newMetrics(prometheus.NewRegistry())
	require.NoError(t, err)
	return newRecorder(nil, m, "host")
}

func TestAnnounce(t *testing.T) {
	t.Parallel()
	is := func(kind, status, reason string) *metav1.Condition {
		return &metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "message"}
	}
	const data, plugins, paused = bootstrap.ConditionDataSecretAvailable, bootstrap.ConditionPluginsReady, clusterv1.PausedCondition
	for about, c := range map[string]struct {
		before, after *metav1.Condition
		want          string // type, reason and note
	}{
		"data that is there at once":  {nil, is(data, "True", "Available"), "Normal Available DataSecretAvailable is True: message"},
		"what waits":                  {nil, is(data, "Unknown", "WaitingForControlPlane"), "Normal WaitingForControlPlane DataSecretAvailable is Unknown: message"},
		"no owner at the beginning":   {nil, is(data, "Unknown", "WaitingForOwner"), ""},
		"no owner any more":           {is(data, "Unknown", "WaitingForInitLock"), is(data, "Unknown", "WaitingForOwner"), "Normal WaitingForOwner DataSecretAvailable is Unknown: message"},
		"what waits behind another":   {nil, is(data, "Unknown", "Waiting"), ""},
		"an invalid input":            {nil, is(plugins, "False", "InvalidReference"), "Warning InvalidReference PluginsReady is False: message"},
		"another reason":              {is(plugins, "False", "A"), is(plugins, "False", "B"), "Warning B PluginsReady is False: message"},
		"another status":              {is(plugins, "False", "A"), is(plugins, "True", "Ready"), "Normal Ready PluginsReady is True: message"},
		"the same":                    {is(plugins, "False", "A"), is(plugins, "False", "A"), ""},
		"true from the beginning":     {nil, is(plugins, "True", "Ready"), ""},
		"true when its turn comes":    {is(plugins, "Unknown", "Waiting"), is(plugins, "True", "Ready"), ""},
		"the summary":                 {nil, is(bootstrap.ConditionReady, "False", "InvalidReference"), ""},
		"not paused at the beginning": {nil, is(paused, "False", "NotPaused"), ""},
		"paused":                      {is(paused, "False", "NotPaused"), is(paused, "True", "Paused"), "Normal Paused Paused is True: message"},
		"not paused any more":         {is(paused, "True", "Paused"), is(paused, "False", "NotPaused"), "Normal NotPaused Paused is False: message"},
	} {
		events := unwritten(t)
		(&Reconciler{events: events}).announce(&bootstrap.MachineBootstrapConfig{}, c.before, c.after)
		got := ""
		if len(events.queue) > 0 {
			event := <-events.queue
			got = strings.Join([]string{event.Type, event.Reason, event.Note}, " ")
		}
		assert.Equal(t, c.want, got, about)
		assert.Empty(t, events.queue, about)
	}
}

// TestRecord: the API server accepts the event of any config, and a full queue neither waits nor grows.
func TestRecord(t *testing.T) {
	t.Parallel()
	events := unwritten(t)
	for _, name := range []string{"a", strings.Repeat("a", 253), strings.Repeat("a", 56) + ".b"} {
		config := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		events.record(config, "Normal", "Reason", strings.Repeat("é", 2*noteLimit))
		event := <-events.queue
		require.Empty(t, validation.IsDNS1123Subdomain(event.GenerateName+"x"))
		require.LessOrEqual(t, len(event.Note), noteLimit)
		require.True(t, utf8.ValidString(event.Note))
		require.Regexp(t, `é \.\.\. and [0-9]{4} more bytes$`, event.Note)
	}
	for range eventQueue + 2 {
		events.record(&bootstrap.MachineBootstrapConfig{}, "Normal", "Reason", "")
	}
	require.Len(t, events.queue, eventQueue)
	require.Equal(t, 2, dropped(t, events))
}

// dropped is the value of the metric.
func dropped(t *testing.T, events *recorder) int {
	t.Helper()
	registry := prometheus.NewRegistry()
	require.NoError(t, registry.Register(events.metrics.eventsDropped))
	found, err := registry.Gather()
	require.NoError(t, err)
	return int(found[0].GetMetric()[0].GetCounter().GetValue())
}

// TestAnnouncedOnce: a reconciliation that began before the status of the last one was in the cache announces nothing again.
func TestAnnouncedOnce(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	require.NoError(t, bootstrap.AddToScheme(scheme))
	created := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "node"}}
	r := &Reconciler{
		Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(created).WithStatusSubresource(created).Build(), events: unwritten(t),
	}
	r.metrics = r.events.metrics
	old := &bootstrap.MachineBootstrapConfig{}
	require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(created), old))
	for range 2 {
		config := old.DeepCopy()
		(&work{config: config}).available("data")
		require.NoError(t, r.save(t.Context(), old, config))
		require.Len(t, r.events.queue, 1)
	}
	stored := &bootstrap.MachineBootstrapConfig{}
	require.NoError(t, r.Client.Get(t.Context(), client.ObjectKeyFromObject(created), stored))
	require.Equal(t, "data", stored.Status.DataSecretName)
	require.NoError(t, r.save(t.Context(), stored, stored.DeepCopy()), "nothing to write")
	require.Len(t, r.events.queue, 1)
}
