package controller

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

// plugin is an object of another group in generation 3, with a status.
func plugin(status any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "HTTPProxy", "metadata": map[string]any{"name": "site", "generation": int64(3)},
		"status": status,
	}}
}

func condition(kind, status, reason, message string) map[string]any {
	return map[string]any{"type": kind, "status": status, "reason": reason, "message": message}
}

// reported is a status of an object in a generation, with a Secret of documents.
func reported(generation int, secret string, conditions ...any) map[string]any {
	return map[string]any{"observedGeneration": generation, "secretName": secret, "conditions": conditions}
}

// TestForeign: an object of another group has documents when its status says so of the generation that is there.
func TestForeign(t *testing.T) {
	t.Parallel()
	const waits, wrong = bootstrap.ReasonPluginNotReady, bootstrap.ReasonInvalidReference
	ready, other := condition("Ready", "True", "Done", ""), condition("Other", "False", "X", "")
	for about, c := range map[string]struct {
		status          any
		reason, message string // none: it has documents
	}{
		"ready":          {reported(3, "s", other, ready), "", ""},
		"no status":      {nil, waits, "has changed, and its controller has not seen it yet"},
		"an older one":   {reported(2, "s", ready), waits, "has changed"},
		"no condition":   {reported(3, "s"), waits, "has no condition Ready yet"},
		"other ones":     {reported(3, "s", other), waits, "has no condition Ready yet"},
		"not ready":      {reported(3, "s", condition("Ready", "False", "NoNet", "no network")), waits, "is not ready: NoNet no network"},
		"unknown":        {reported(3, "s", condition("Ready", "Unknown", "", "")), waits, "is not ready:"},
		"no secret":      {reported(3, "", ready), waits, "is ready, but its status names no secretName"},
		"another status": {map[string]any{"observedGeneration": "three"}, wrong, "its status has not the form of a plugin's status"},
		"no mapping":     {"ready", wrong, "its status has not the form of a plugin's status"},
	} {
		s := source{placement: &bootstrap.Placement{}}
		err := foreign(&s, plugin(c.status))
		if c.reason == "" {
			require.NoError(t, err, about)
			assert.Equal(t, "s", s.secret, about)
			continue
		}
		stopped := asStop(err)
		require.NotNil(t, stopped, about)
		assert.Equal(t, c.reason, stopped.reason, about)
		assert.Contains(t, stopped.message, "HTTPProxy site", about)
		assert.Contains(t, stopped.message, c.message, about)
		want := metav1.ConditionUnknown
		if c.reason == bootstrap.ReasonInvalidReference {
			want = metav1.ConditionFalse
		}
		assert.Equal(t, want, stopped.status, about)
	}
}

// TestForeignOrder: the object brings its constraints beside the constraints of the reference.
func TestForeignOrder(t *testing.T) {
	t.Parallel()
	s := source{placement: &bootstrap.Placement{Before: []string{"KubernetesNode"}, After: []string{"Sysctl"}}}
	status := reported(3, "s", condition("Ready", "True", "", ""))
	status["beforePlugins"], status["afterPlugins"] = []any{"ContainerRuntime"}, []any{"Timesync/site"}
	require.NoError(t, foreign(&s, plugin(status)))
	assert.Equal(t, []string{"ContainerRuntime", "KubernetesNode"}, s.before)
	assert.Equal(t, []string{"Timesync/site", "Sysctl"}, s.after)
}
