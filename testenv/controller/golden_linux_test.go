package controller

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/wrap"
	"github.com/machineadm/machineadm/testenv/bootstrapdata"
)

// golden: the data of each format is, byte for byte, what testenv/bootstrapdata boots nodes with, and has parsers read.
func (r *rig) golden(t *testing.T) {
	r.put(t,
		secret("golden-password", map[string]string{"value": bootstrapdata.Token}),
		made(contract.APIVersion, contract.KindSysctl, "node", map[string]any{
			"spec": map[string]any{"parameters": map[string]any{"net.core.somaxconn": "8191"}},
		}))
	stream, err := bootstrapdata.Stream()
	require.NoError(t, err)
	for kind, name := range map[string]string{
		bootstrap.FormatCloudConfig: "golden-cloud-config", bootstrap.FormatIgnition: "golden-ignition",
		bootstrap.FormatCloudbaseInit: "golden-cloudbase-init", bootstrap.FormatUnattend: "golden-unattend",
		bootstrap.FormatTalos: "golden-talos", bootstrap.FormatCombustion: "golden-combustion", bootstrap.FormatPlain: "golden-plain",
	} {
		r.machine(t, "light", name, map[string]any{
			"pluginRefs": []any{map[string]any{"apiGroup": contract.Group, "kind": contract.KindSysctl, "name": "node"}},
			"documents": []any{map[string]any{"apiVersion": strangers, "kind": "Noop", "name": "last", "spec": map[string]any{
				"provider": "test", "touch": []any{"/var/last"}, "token": valueFrom("golden-password"),
			}}},
			"format": map[string]any{"type": kind},
		})
		want, err := new(wrap.Wrapper).Wrap(wrap.Format{Type: kind}, stream)
		require.NoError(t, err)
		have := r.awaitData(t, name)
		require.Equal(t, string(want.Value), string(have.Data["value"]), kind)
		require.Equal(t, want.Format, string(have.Data["format"]), kind)
		require.Equal(t, corev1.SecretType("cluster.x-k8s.io/secret"), have.Type)
	}
}

func valueFrom(name string) map[string]any {
	return map[string]any{"valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": name, "key": "value"}}}
}

// refused: the API server refuses what the schema excludes, and names the field.
func (r *rig) refused(t *testing.T) {
	c := &bootstrap.MachineBootstrapConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "refused"}}
	c.Spec.Format = bootstrap.Format{Type: bootstrap.FormatPlain, Version: "3.4"}
	require.ErrorContains(t, r.Create(t.Context(), c), "spec.format.version: Invalid value: version is for type ignition")
}
