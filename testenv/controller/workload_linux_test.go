package controller

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machineadm/machineadm/testenv/management"
)

// tokens waits until a cluster has so many bootstrap tokens, and returns them.
func (r *rig) tokens(t *testing.T, cluster string, want int) []corev1.Secret {
	t.Helper()
	return management.Tokens(t, r.Workload(t, "default", cluster), want)
}
