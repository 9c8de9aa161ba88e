package controller

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
)

// sizes: the API server refuses an object of 5 MiB, so that no manager has to hold it. A Secret of almost 1 MiB, which is as large as
// one can be, is an input like any other.
func (r *rig) sizes(t *testing.T) {
	huge := object(contract.KindSysctl, "huge")
	huge.Object["spec"] = map[string]any{"parameters": map[string]any{"a.b": strings.Repeat("x", 5<<20)}}
	require.ErrorContains(t, r.Create(t.Context(), huge), "too large")

	large := strings.Repeat(canary, 1<<20/len(canary)-10)
	r.put(t, secret("large", map[string]string{"text": large}))
	r.machine(t, "light", "large-input", map[string]any{"documents": []any{map[string]any{
		"apiVersion": strangers, "kind": "Test", "name": "large",
		"spec": map[string]any{"text": map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "large", "key": "text"}}}},
	}}})
	data := r.awaitData(t, "large-input").Data["value"]
	require.NotEmpty(t, data)
	require.Less(t, len(data), len(large)/10, "it is compressed")
}
