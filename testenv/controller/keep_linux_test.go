package controller

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/testenv/management"
)

// TestWorkers: workers of a cluster whose control plane is kubeadm's, and what happens to data that is there.
func TestWorkers(t *testing.T) {
	r := start(t, everything()...)
	r.apply(t, "workers.yaml")
	r.running(t, 3)
	configs := r.ready(t, 2)
	for i := range configs {
		require.Equal(t, []string{"Sysctl/base", "ContainerRuntime/containerd", "KubernetesNode/worker"}, configs[i].Status.Order)
		require.Equal(t, []string{"Sysctl base", "KubernetesNodeTemplate worker"}, names(configs[i].Status.Plugins))
	}
	r.tokens(t, "first", 0)
	before := map[string]*corev1.Secret{}
	for i := range configs {
		before[configs[i].Name] = r.data(t, "default", configs[i].Name)
	}
	unchanged := func(t *testing.T) {
		t.Helper()
		for name, secret := range before {
			now := r.data(t, "default", name)
			require.Equal(t, secret.ResourceVersion, now.ResourceVersion, "nothing writes to %s", name)
		}
	}

	t.Run("a status that is lost comes back", func(t *testing.T) {
		for i := range configs {
			lost := configs[i].DeepCopy()
			lost.Status = bootstrap.MachineBootstrapConfigStatus{}
			require.NoError(t, r.Status().Update(t.Context(), lost))
		}
		for _, c := range r.ready(t, 2) {
			for i := range configs {
				if configs[i].Name == c.Name {
					require.Equal(t, timeless(&configs[i]), timeless(&c))
				}
			}
		}
		unchanged(t)
	})
	t.Run("an input that changes is named", func(t *testing.T) {
		require.NoError(t, r.Patch(t.Context(), object("Sysctl", "base"), merge(`{"spec":{"parameters":{"vm.max_map_count":"262144"}}}`)))
		r.condition(t, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, "Sysctl.machineadm.cluster.x-k8s.io/base")
		unchanged(t)
		require.NoError(t, r.Patch(t.Context(), object("Sysctl", "base"), merge(`{"spec":{"parameters":null}}`)))
		r.condition(t, bootstrap.ConditionInputsUpToDate, metav1.ConditionTrue, "")
	})
	t.Run("an input that goes is named", func(t *testing.T) {
		require.NoError(t, r.Delete(t.Context(), object("Sysctl", "base")))
		r.condition(t, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, "Sysctl base does not exist")
		unchanged(t)
		for _, c := range r.ready(t, 2) {
			require.NotEmpty(t, c.Status.DataSecretName)
		}
	})
	t.Run("a manager that starts again writes nothing", func(t *testing.T) {
		r.manager.Kill(t)
		mark := len(r.Audit(t))
		r.run(t)
		r.condition(t, bootstrap.ConditionInputsUpToDate, metav1.ConditionFalse, "Sysctl base does not exist")
		// The config that is made now is reconciled after those that were there.
		require.NoError(t, r.Create(t.Context(), config("last")))
		r.condition(t, bootstrap.ConditionReady, metav1.ConditionUnknown, "no Machine or MachinePool", "last")
		for _, q := range r.Audit(t)[mark:] {
			if q.User.Name == account && q.Object.Name != "last" && q.Object.Resource != "events" {
				require.Contains(t, []string{"get", "list", "watch"}, q.Verb, "%+v", q)
			}
		}
		unchanged(t)
	})
}

// ready waits until so many configs are, and returns them.
func (r *rig) ready(t *testing.T, want int) []bootstrap.MachineBootstrapConfig {
	t.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	var found []bootstrap.MachineBootstrapConfig
	management.Await(t, r, limit, &configs, func() error {
		found = nil
		for i := range configs.Items {
			if meta.IsStatusConditionTrue(configs.Items[i].Status.Conditions, bootstrap.ConditionReady) {
				found = append(found, configs.Items[i])
			}
		}
		if len(found) != want {
			return &unfinished{len(found), want, configs.Items}
		}
		return nil
	})
	return found
}

// condition waits until a condition of every config, or of those that are named, has a status and a message with the text.
func (r *rig) condition(t *testing.T, condition string, status metav1.ConditionStatus, text string, names ...string) {
	t.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(t, r, limit, &configs, func() error {
		for i := range configs.Items {
			c := &configs.Items[i]
			if len(names) > 0 && !contains(names, c.Name) {
				continue
			}
			have := meta.FindStatusCondition(c.Status.Conditions, condition)
			if have == nil || have.Status != status || !containsText(have.Message, text) {
				return fmt.Errorf("%s of %s is %+v, not %s with %q", condition, c.Name, have, status, text)
			}
		}
		return nil
	})
}

// timeless is a status without the times of its transitions.
func timeless(c *bootstrap.MachineBootstrapConfig) *bootstrap.MachineBootstrapConfigStatus {
	s := c.Status.DeepCopy()
	for i := range s.Conditions {
		s.Conditions[i].LastTransitionTime = metav1.Time{}
	}
	return s
}

func merge(patch string) client.Patch {
	return client.RawPatch("application/merge-patch+json", []byte(patch))
}
