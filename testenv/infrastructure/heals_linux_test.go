package infrastructure

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestHeals: what passes by itself needs no hand. Each start of containerd takes 60 s, so that a machine joins some minutes after it is on.
func TestHeals(t *testing.T) {
	needs.Campaign(t)
	r := layout{machines: 4, images: map[string]func(string) error{"late": late}, manager: []string{"--bootstrap-token-ttl=1m"}}.start(t)
	r.controlPlane(t)
	t.Run("each", func(t *testing.T) {
		t.Run("reboot", func(t *testing.T) { t.Parallel(); r.rebooted(t) })
		t.Run("token", func(t *testing.T) { t.Parallel(); r.tokenLost(t) })
		t.Run("paused", func(t *testing.T) { t.Parallel(); r.tokenExpired(t) })
	})
	r.deleted(t)
}

// late makes each start of containerd slow.
func late(root string) error {
	dir := filepath.Join(root, "etc/systemd/system/containerd.service.d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "late.conf"), []byte("[Service]\nExecStartPre=/bin/sleep 60\n"), 0o644) //nolint:gosec // an image's
}

// rebooted: a node that reboots after it has joined is ready again, and nothing is applied once more.
func (r *rig) rebooted(t *testing.T) {
	machine := r.slow(t, "reboot")
	r.running(t, 1, ofDeployment("reboot"))
	first, ok := r.of(machine)
	require.True(t, ok)
	r.Reboot(t, machine)
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		if meta.IsStatusConditionTrue(machines.Items[0].Status.Conditions, clusterv1.MachineReadyCondition) {
			return errors.New("the Machine is Ready")
		}
		return nil
	}, ofDeployment("reboot"))
	r.running(t, 1, ofDeployment("reboot"))
	again, _ := r.of(machine)
	assert.Equal(t, first, again)
}

// tokenLost: the token of a machine that has not joined is deleted, and the manager is killed. Both come back.
func (r *rig) tokenLost(t *testing.T) {
	machine := r.slow(t, "token")
	token := keyOf(r.token(t, "token"))
	require.NoError(t, r.Workload(t, "default", "alone").Delete(t.Context(), token))
	r.manager.Kill(t)
	r.manager = r.Machineadm(r.t, r.managerArguments...) // for all tests of the rig
	r.running(t, 1, ofDeployment("token"))
	r.prepared(t, machine, 5)
}

// tokenExpired: the token of a machine that has not joined expires while the config is paused, and is made again afterwards.
func (r *rig) tokenExpired(t *testing.T) {
	machine := r.slow(t, "paused")
	token := keyOf(r.token(t, "paused"))
	config := r.config(t, "paused")
	pause := func(annotations map[string]string) {
		before := config.DeepCopy()
		config.SetAnnotations(annotations)
		require.NoError(t, r.Patch(t.Context(), config, client.MergeFrom(before)))
	}
	annotations := config.GetAnnotations()
	paused := map[string]string{clusterv1.PausedAnnotation: ""}
	for name, value := range annotations {
		paused[name] = value
	}
	pause(paused)
	workload := r.Workload(t, "default", "alone")
	nodestest.Eventually(t, "the token to expire", func() bool {
		return apierrors.IsNotFound(workload.Get(t.Context(), client.ObjectKeyFromObject(token), token))
	})
	pause(annotations)
	r.running(t, 1, ofDeployment("paused"))
	r.prepared(t, machine, 5)
}

// slow makes a MachineDeployment with one machine that joins late, and returns its name when it is on.
func (r *rig) slow(t *testing.T, name string) string {
	t.Helper()
	objects := r.deployment(t, name)
	set(t, kind(t, objects, kindMachine+"Template"), "late", "spec", "template", "spec", "image")
	r.apply(t, objects...)
	return r.withoutNode(t, ofDeployment(name))
}

// config returns the only config of a MachineDeployment.
func (r *rig) config(t *testing.T, deployment string) *bootstrap.MachineBootstrapConfig {
	t.Helper()
	var all bootstrap.MachineBootstrapConfigList
	require.NoError(t, r.List(t.Context(), &all, ofDeployment(deployment)))
	require.Len(t, all.Items, 1)
	return &all.Items[0]
}

// token returns the bootstrap token in the data of the only machine of a MachineDeployment.
func (r *rig) token(t *testing.T, deployment string) string {
	t.Helper()
	var data corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: r.config(t, deployment).Name + "-machineadm-data"}, &data))
	token := regexp.MustCompile(`value: ([a-z0-9]{6}\.[a-z0-9]{16})`).FindSubmatch(data.Data["value"])
	require.NotNil(t, token)
	return string(token[1])
}

// keyOf returns the Secret of a bootstrap token, without its content.
func keyOf(token string) *corev1.Secret {
	id, _, _ := strings.Cut(token, ".")
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}}
}
