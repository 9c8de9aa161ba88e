package controller

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
)

// rounds is the number of kills of TestKilled.
var rounds = flag.Int("rounds", 10, "how often the manager is killed")

// TestKilled: the manager is killed again and again while Machines of every role come up, and then while workers are replaced by
// others with another configuration.
func TestKilled(t *testing.T) {
	r := start(t, everything()...)
	r.apply(t, "standalone.yaml")
	r.apply(t, "killed.yaml")
	management.Publish(t, r, "alone")
	const machines, workers = 7, 4
	seed, err := needs.Seed(t.Name())
	require.NoError(t, err)
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // repeatable, not secret
	took := time.Second                      // the start of the manager
	for round := range *rounds {
		if round == *rounds/2 {
			r.rollOut(t)
		}
		// Each manager gets past its start; after that it works for about as long.
		began := time.Now()
		r.manager.AwaitReady(t, "http://"+r.metrics+"/metrics")
		require.Eventually(t, func() bool { return r.reconciled(t) > 0 }, limit, 10*time.Millisecond)
		if round > 0 {
			took = time.Since(began)
		}
		at := time.Duration(random.Float64() * 1.5 * float64(took))
		select {
		case <-time.After(at):
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
		r.manager.Kill(t)
		t.Logf("MACHINEADM_SEED=%d, round %d: killed %s after its start, which took %s", seed, round, at, took)
		r.again(t)
	}
	r.awaitManager(t)
	r.replaced(t)
	r.running(t, machines)
	r.tokens(t, "alone", 0)

	var configs bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &configs))
	require.Len(t, configs.Items, machines)
	created, inits := map[string]int{}, 0
	for _, q := range r.Audit(t) {
		if q.User.Name != account || q.Object.Resource != "secrets" || q.Object.Subresource != "" || q.Response.Code >= 300 {
			continue
		}
		switch q.Verb {
		case "create":
			created[q.Object.Name]++
		case "update", "patch", "delete":
			t.Errorf("%s of Secret %s: data is made once", q.Verb, q.Object.Name)
		}
	}
	for i := range configs.Items {
		name := configs.Items[i].Name
		// The audit log has no name of what is created; the Secret itself says that it was never changed.
		require.Len(t, r.data(t, "default", name).ManagedFields, 1, "%s was made once", name)
		if strings.HasPrefix(name, "cp-") && r.node(t, name).Role == "controlPlaneInit" {
			inits++
		}
	}
	require.Equal(t, 1, inits, "one Machine initializes the control plane")
	require.LessOrEqual(t, created[""], machines+workers+5, "the data of each and of the workers before, four authorities and a key")
	r.sameAuthorities(t)
}

// rollOut has the workers of killed.yaml replaced.
func (r *rig) rollOut(t *testing.T) {
	t.Helper()
	workers := &clusterv1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "more"}}
	require.NoError(t, r.Patch(t.Context(), workers, merge(`{"spec":{"template":{"spec":{"bootstrap":{"configRef":{"name":"other"}}}}}}`)))
}

// replaced waits until the workers have the configuration of the rollout, and none of those before is left.
func (r *rig) replaced(t *testing.T) {
	t.Helper()
	var configs bootstrap.MachineBootstrapConfigList
	management.Await(t, r, limit, &configs, func() error {
		others := 0
		for i := range configs.Items {
			switch configs.Items[i].Annotations[clusterv1.TemplateClonedFromNameAnnotation] {
			case "more":
				return fmt.Errorf("%s is of the template before", configs.Items[i].Name)
			case "other":
				others++
			}
		}
		if others != 4 {
			return fmt.Errorf("%d of 4 workers are replaced", others)
		}
		return nil
	})
	for i := range configs.Items {
		if configs.Items[i].Annotations[clusterv1.TemplateClonedFromNameAnnotation] == "other" {
			require.Contains(t, string(r.data(t, "default", configs.Items[i].Name).Data["value"]), "vm.max_map_count", configs.Items[i].Name)
		}
	}
}

// sameAuthorities: every control plane has the certificate authorities that the cluster's Secrets have.
func (r *rig) sameAuthorities(t *testing.T) {
	t.Helper()
	var ca corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "alone-ca"}, &ca))
	for _, name := range []string{"cp-0", "cp-1"} {
		require.Equal(t, string(ca.Data["tls.crt"]), r.node(t, name).Certificates.CA.Certificate)
	}
}

// TestFailover: of two managers one works, and the other takes over.
func TestFailover(t *testing.T) {
	t.Parallel()
	r := start(t, everything()...)
	r.manager.Stop(t)
	short := []string{
		"--leader-elect", "--leader-elect-lease-duration=3s", "--leader-elect-renew-deadline=2s", "--leader-elect-retry-period=500ms",
		"--leader-elect-namespace=machineadm-system",
	}
	r.run(t, short...)
	leader := r.manager
	r.run(t, short...)
	r.apply(t, "standalone.yaml")
	management.Publish(t, r, "alone")
	r.condition(t, bootstrap.ConditionDataSecretAvailable, "True", "", "cp-0", "cp-1")
	leader.Kill(t)
	r.running(t, 3)
	r.tokens(t, "alone", 0)
	for _, name := range []string{"cp-0", "cp-1", "worker"} {
		require.Len(t, r.data(t, "default", name).ManagedFields, 1)
	}
}
