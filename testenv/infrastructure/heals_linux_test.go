package infrastructure

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
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

	"github.com/machineadm/machineadm/contract/report"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/reporting/words"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// TestHeals: what passes by itself needs no hand. Each start of a service of the documents takes 60 s, so that a
// machine joins some minutes after it is on.
func TestHeals(t *testing.T) {
	needs.Campaign(t)
	r := layout{machines: 4, images: map[string]func(string) error{"late": late, "cut": cut(t), "busy": busy}, manager: []string{"--bootstrap-token-ttl=1m"}}.start(t)
	r.controlPlane(t)
	t.Run("each", func(t *testing.T) {
		t.Run("reboot", func(t *testing.T) { t.Parallel(); r.rebooted(t) })
		t.Run("token", func(t *testing.T) { t.Parallel(); r.tokenLost(t) })
		t.Run("paused", func(t *testing.T) { t.Parallel(); r.tokenExpired(t) })
		t.Run("servers", func(t *testing.T) { t.Parallel(); r.serversDown(t) })
		t.Run("power", func(t *testing.T) { t.Parallel(); r.powerCuts(t) })
		t.Run("load", func(t *testing.T) { t.Parallel(); r.loaded(t) })
	})
	t.Run("rollout", r.rolloutKilled)
	r.deleted(t)
}

// late makes each start of the services of the documents slow.
func late(root string) error {
	for _, service := range []string{"chrony", "containerd", "kubelet"} {
		dir := filepath.Join(root, "etc/systemd/system", service+".service.d")
		if err := errors.Join(
			os.MkdirAll(dir, 0o755),
			os.WriteFile(filepath.Join(dir, "late.conf"), []byte("[Service]\nExecStartPre=/bin/sleep 60\n"), 0o644), //nolint:gosec // an image's
		); err != nil {
			return err
		}
	}
	return nil
}

// loops is how many endless loops an image has, and so about the load of a machine.
const loops = 20

// busy starts the loops at the begin of each boot.
func busy(root string) error {
	const unit = `[Unit]
DefaultDependencies=no

[Service]
ExecStart=/bin/sh -c "seq %[1]d | xargs --max-procs=%[1]d --replace sh -c 'while :; do :; done'"
`
	return early(root, "busy", fmt.Sprintf(unit, loops))
}

// loaded: a machine joins while the loops use its processors, from before the start of cloud-init until after the run.
func (r *rig) loaded(t *testing.T) {
	objects := r.deployment(t, "load")
	set(t, kind(t, objects, kindMachine+"Template"), "busy", "spec", "template", "spec", "image")
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment("load"))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 5)
	said, err := r.Node(machine).Exec(t.Context(), "pgrep", "--count", "--full", "^sh -c while")
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(loops), strings.TrimSpace(said.Stdout))
}

// serversDown: the server of a RemoteConfig does not serve for a minute, nor does that of reports when a report comes.
func (r *rig) serversDown(t *testing.T) {
	objects := r.deployment(t, "servers")
	target := r.target()
	spec, _ := target["spec"].(map[string]any)
	spec["uri"] = r.url + down + "reports"
	set(t, kind(t, objects, "MachineBootstrapConfigTemplate"), []any{map[string]any{
		"apiVersion": contract.APIVersion, "kind": contract.KindRemoteConfig, "name": "site", "before": []any{"KubernetesNode"},
		"spec": map[string]any{"provider": "http", "uri": r.url + down + "stream", "providerConfig": map[string]any{"ca": r.ca}},
	}, target}, "spec", "template", "spec", "documents")
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment("servers"))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 7)
	nodestest.Eventually(t, "the report to be sent", func() bool {
		last, ok := r.of(machine)
		return ok && last.Outcome == report.RunSucceeded
	})
}

// cuts are moments of a run: so many changes have begun; or seconds after the start of the changes of KubernetesNode, or of kubeadm join.
// They are the lines of a file of the image.
func cuts() []string {
	within := func(what string) string { return fmt.Sprintf("%s 0.%03d", what, rand.IntN(900)) }
	return []string{fmt.Sprintf("changes %d", 1+rand.IntN(4)), within("document"), within("document"), within("join")}
}

// cut returns the step that stops all that a run has started at each of the moments, a boot each, so that the power can be cut there.
func cut(t *testing.T) func(root string) error {
	t.Helper()
	const unit = `[Unit]
DefaultDependencies=no

[Service]
ExecStart=/bin/bash /etc/cut
`
	const script = `set -- $(sed -n "$(($(ls /var/cut 2>/dev/null | wc -l) + 1))p" /etc/cuts)
[ "$1" ] || exit 0
report=/run/machineadm/report.json
until [ -e /var/lib/cloud/scripts/per-boot/machineadm ] && [ ! -e /etc/machineadm/node.yaml ]; do # no run is left
	case $1 in
	changes) [ "$(cat $report 2>/dev/null | grep -c '"id": ".*:')" -lt "$2" ] || break ;;
	document) ! grep -qs '"id": "kubeadm:' $report || { sleep "$2"; break; } ;;
	join) ! pgrep -f "^kubeadm join" >/dev/null || { sleep "$2"; break; } ;;
	esac
done
pkill -STOP "machineadm|kubeadm"
mkdir -p /var/cut
touch "/var/cut/$(date +%s)-$1-$2"
`
	lines := cuts()
	t.Logf("the power is cut at %q", lines)
	return func(root string) error {
		return errors.Join(
			os.WriteFile(filepath.Join(root, "etc/cut"), []byte(script), 0o600),
			os.WriteFile(filepath.Join(root, "etc/cuts"), []byte(strings.Join(lines, "\n")+"\n"), 0o600),
			early(root, "cut", unit),
		)
	}
}

// rolloutKilled: our manager and the core provider are killed at random moments while two workers are replaced.
func (r *rig) rolloutKilled(t *testing.T) {
	objects := r.deployment(t, "rollout")
	deployment, config := kind(t, objects, "MachineDeployment"), kind(t, objects, "MachineBootstrapConfigTemplate")
	set(t, deployment, int64(2), "spec", "replicas")
	set(t, deployment, map[string]any{
		"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": int64(0), "maxUnavailable": int64(1)},
	}, "spec", "rollout", "strategy")
	r.apply(t, objects...)
	old := map[string]bool{}
	for _, m := range r.running(t, 2, ofDeployment("rollout")) {
		old[m.Name] = true
	}
	config.SetName("rollout-next")
	set(t, deployment, "rollout-next", "spec", "template", "spec", "bootstrap", "configRef", "name")
	r.apply(t, config, deployment)
	kills := map[int]string{1 + rand.IntN(10): "manager", 11 + rand.IntN(10): "core", 21 + rand.IntN(10): "manager"}
	t.Logf("what is killed after so many changes of Machines: %v", kills)
	var machines clusterv1.MachineList
	changes := 0
	management.Await(t, r, limit, &machines, func() error {
		changes++
		switch kills[changes] {
		case "manager":
			r.manager.Kill(t)
			r.manager = r.Machineadm(r.t, r.managerArguments...) // for all tests of the rig, as below
		case "core":
			r.core.Kill(t)
			r.core = r.Core(r.t)
		}
		for i := range machines.Items {
			if old[machines.Items[i].Name] {
				return fmt.Errorf("%s is there", machines.Items[i].Name)
			}
		}
		return nil
	}, ofDeployment("rollout"))
	for _, m := range r.running(t, 2, ofDeployment("rollout")) {
		r.prepared(t, m.Spec.InfrastructureRef.Name, 5)
	}
	require.Greater(t, changes, slices.Max(slices.Collect(maps.Keys(kills))))
	management.Tokens(t, r.Workload(t, "default", "alone"), 0)
}

// powerCuts: a machine whose power is cut in the middle of several runs becomes a node.
func (r *rig) powerCuts(t *testing.T) {
	objects := r.deployment(t, "power")
	set(t, kind(t, objects, kindMachine+"Template"), "cut", "spec", "template", "spec", "image")
	r.apply(t, objects...)
	machine := r.withoutNode(t, ofDeployment("power"))
	for i := range cuts() {
		nodestest.Eventually(t, "the moment", func() bool {
			said, err := r.Node(machine).Exec(t.Context(), "sh", "-c", "ls /var/cut | wc -l")
			return err == nil && strings.TrimSpace(said.Stdout) == strconv.Itoa(i+1)
		})
		last, _ := r.report(t, machine)
		t.Log(words.Headline(last, true))
		r.PowerCut(t, machine)
	}
	r.running(t, 1, ofDeployment("power"))
	// The report can be of an earlier boot: the last moment may have been after the end of the run.
	nodestest.Eventually(t, "the end of the run", func() bool {
		said, err := r.Node(machine).Exec(t.Context(), "sh", "-c", "machineadm status && ! test -e /etc/machineadm/node.yaml")
		return err == nil && said.ExitCode == 0 && strings.HasPrefix(said.Stdout, "Succeeded: 5 documents")
	})
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
	// One that begins with a digit is in quotes.
	token := regexp.MustCompile(`value: "?([a-z0-9]{6}\.[a-z0-9]{16})`).FindSubmatch(data.Data["value"])
	require.NotNil(t, token, "no token in %s", data.Data["value"]) // of a cluster that ends with the test
	return string(token[1])
}

// keyOf returns the Secret of a bootstrap token, without its content.
func keyOf(token string) *corev1.Secret {
	id, _, _ := strings.Cut(token, ".")
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "bootstrap-token-" + id}}
}
