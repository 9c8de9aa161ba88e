package infrastructure

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/report"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/reporting/words"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/cluster"
	"github.com/machineadm/machineadm/testenv/management"
	"github.com/machineadm/machineadm/testenv/nodes/nodestest"
)

// noDocument is the kind of an error that is not about a document.
const noDocument = "none"

// failure is a fault of an image, or of objects, with which no machine becomes a node.
type failure struct {
	name  string
	image func(root string) error
	// objects makes the fault in the objects of a MachineDeployment.
	objects func(t *testing.T, all []*unstructured.Unstructured)
	// kind is the kind of the document with the error, in the report with the cause and the remedy. Without a kind there is no report.
	kind, stage, cause, remedy string
	// detail is what only the machine says: the words of another program.
	detail string
	// registers means that the machine is a node before a document fails.
	registers bool
	// passes means that the cause is gone after a boot, in which the run continues.
	passes bool
}

// failures has first what takes minutes: what may pass is tried for so long.
func failures() []failure {
	const plugins = "usr/libexec/machineadm/machineadm-"
	return []failure{
		{
			name: "endpoint",
			objects: func(t *testing.T, all []*unstructured.Unstructured) {
				set(t, kind(t, all, "KubernetesNodeTemplate"), "management:1", "spec", "template", "spec", "discovery", "endpoint")
			},
			kind: "KubernetesNode", stage: "applying", cause: "the API server cannot be reached", remedy: "check the address",
		},
		{
			name: "time-servers",
			objects: func(t *testing.T, all []*unstructured.Unstructured) {
				set(t, kind(t, all, "Timesync"), []any{map[string]any{"address": "management"}}, "spec", "servers")
			},
			kind: "Timesync", stage: "applying", cause: "management: nothing listens on UDP port 123 there", remedy: "remove the cause",
		},
		{
			name: "kubelet",
			image: func(root string) error {
				const script = "#!/bin/sh\n[ \"$1\" != --version ] || exec echo Kubernetes v1.36.3\necho out of order >&2\nexit 1\n"
				return needs.WriteProgram(filepath.Join(root, "usr/bin/kubelet"), []byte(script))
			},
			kind: "KubernetesNode", stage: "applying", cause: "the kubelet does not become healthy", remedy: "see the log of the kubelet",
			detail: "kubelet: out of order",
		},
		{
			name:  "containerd",
			image: appended("etc/containerd/config.toml", "[plugins\n"),
			kind:  "ContainerRuntime", stage: "planning", cause: "/etc/containerd/config.toml: line 8, column 9: not TOML", remedy: "correct the file",
		},
		{
			name: "authority",
			objects: func(t *testing.T, all []*unstructured.Unstructured) {
				set(t, kind(t, all, "KubernetesNodeTemplate"), []any{"sha256:" + strings.Repeat("0", 64)}, "spec", "template", "spec", "discovery", "caCertHashes")
			},
			kind: "KubernetesNode", stage: "applying", cause: "another cluster answers, or its certificate authority has changed", remedy: "compare the hash",
		},
		{
			name: "version",
			objects: func(t *testing.T, all []*unstructured.Unstructured) {
				set(t, kind(t, all, "MachineDeployment"), "v1.37.1", "spec", "template", "spec", "version")
			},
			kind: "KubernetesNode", stage: "planning", cause: "the installed kubeadm is v1.36.3", remedy: "install the kubeadm of this version",
		},
		{
			name:  "plugin-absent",
			image: func(root string) error { return os.Remove(filepath.Join(root, plugins+"sysctl-plugin-procfs")) },
			kind:  "Sysctl", stage: "starting the plugins", cause: "no plugin for Sysctl is installed", remedy: "install it in one of these directories",
		},
		{
			name: "plugin-writable",
			image: func(root string) error {
				return os.Chmod(filepath.Join(root, plugins+"timesync-plugin-chronyd"), 0o777)
			},
			kind: "Timesync", stage: "starting the plugins", cause: "can be written by its group and everyone", remedy: "chmod go-w",
		},
		{
			name:  "disk-of-images",
			image: full("/var/lib/containerd", "8m"),
			kind:  "KubernetesNode", stage: "planning", cause: "the file system of /var/lib/containerd/", remedy: "free space", passes: true,
		},
		{
			name:  "disk-of-containerd",
			image: full("/var/lib/containerd", "4k"),
			kind:  "ContainerRuntime", stage: "applying", cause: "the daemon does not serve the Container Runtime Interface", remedy: "look for the cause elsewhere",
			passes: true,
		},
		{
			name:  "disk-of-pods",
			image: full("/var/lib/kubelet", "8m"),
			kind:  "KubernetesNode", stage: "planning", cause: "the file system of /var/lib/kubelet has 8 MiB free", remedy: "free space", passes: true,
		},
		{
			name:  "disk-of-state",
			image: full("/var/lib/machineadm", "4k"),
			kind:  noDocument, stage: "reading the stream", cause: "no space left on device", remedy: "check that the directory is writable", passes: true,
		},
		{
			name: "late",
			objects: func(t *testing.T, all []*unstructured.Unstructured) {
				config := kind(t, all, "MachineBootstrapConfigTemplate")
				documents, _, err := unstructured.NestedSlice(config.Object, "spec", "template", "spec", "documents")
				require.NoError(t, err)
				set(t, config, append(documents, map[string]any{
					"apiVersion": contract.APIVersion, "kind": contract.KindSysctl, "name": "late-node", "after": []any{"KubernetesNode"},
					"spec": map[string]any{"parameters": map[string]any{"net.ipv4.tcp_adv_win_scale": "99"}},
				}), "spec", "template", "spec", "documents")
			},
			kind: "Sysctl", stage: "applying", cause: "the kernel refuses net.ipv4.tcp_adv_win_scale = 99", remedy: "value", registers: true,
		},
		{
			name: "cut", // nothing is applied of user data that is not whole
			image: func(root string) error {
				file := filepath.Join(root, "var/lib/cloud/seed/nocloud/user-data")
				info, err := os.Stat(file)
				if err != nil {
					return err
				}
				return os.Truncate(file, info.Size()/2)
			},
		},
	}
}

// TestFailures: a machine that fails says why, on the machine and in the management cluster in the same words, and is replaced by one that runs
// when the cause is corrected and its Machine deleted.
func TestFailures(t *testing.T) {
	needs.Campaign(t)
	images := map[string]func(string) error{}
	for _, f := range failures() {
		images[f.name] = f.image
	}
	r := layout{machines: 4, images: images, serve: true}.start(t)
	r.controlPlane(t)
	t.Run("each", func(t *testing.T) {
		t.Run("image", func(t *testing.T) { t.Parallel(); r.imageMissing(t) })
		for _, f := range failures() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				r.fails(t, f)
			})
		}
	})
	r.deleted(t)
}

// controlPlane makes the Cluster of the examples with one control plane and no worker.
func (r *rig) controlPlane(t *testing.T) {
	t.Helper()
	objects := small(t)
	set(t, find(t, objects, "MachineDeployment", "alone"), int64(0), "spec", "replicas")
	r.apply(t, objects...)
	r.running(t, 1)
}

// fails: the report names document, stage, cause and remedy; the Machine waits for its node until it is deleted after the correction.
func (r *rig) fails(t *testing.T, f failure) {
	good, wrong := r.deployment(t, f.name), r.deployment(t, f.name)
	store(t, good)
	store(t, wrong)
	if f.image != nil {
		set(t, kind(t, wrong, kindMachine+"Template"), f.name, "spec", "template", "spec", "image")
	}
	if f.objects != nil {
		f.objects(t, wrong)
	}
	r.apply(t, wrong...)
	var failed string
	if f.registers {
		failed = r.registered(t, ofDeployment(f.name))
	} else {
		failed = r.withoutNode(t, ofDeployment(f.name))
	}
	if f.kind != "" {
		r.reported(t, failed, f)
	} else {
		r.untouched(t, failed)
		r.bootstrapped(t, r.machineOf(t, failed).Name, metav1.ConditionUnknown, "the machine is provisioned, and has not fetched its documents")
	}
	assert.Equal(t, f.kind != "", r.whole(t, failed))
	var machines clusterv1.MachineList
	require.NoError(t, r.List(t.Context(), &machines, ofDeployment(f.name)))
	require.Len(t, machines.Items, 1)
	machine := &machines.Items[0]
	if !f.registers {
		require.Equal(t, clusterv1.MachinePhaseProvisioned, machine.Status.GetTypedPhase())
		waits := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition)
		require.NotNil(t, waits)
		require.Equal(t, "Waiting for a Node with spec.providerID "+Prefix+failed+" to exist", waits.Message)
	}
	if f.passes {
		r.Reboot(t, failed)
	} else {
		r.apply(t, good...)
		require.NoError(t, client.IgnoreNotFound(r.Delete(t.Context(), machine))) // another version replaces it by itself
		r.replaced(t, failed)
	}
	next := r.running(t, 1, ofDeployment(f.name))[0].Spec.InfrastructureRef.Name
	r.prepared(t, next, 5)
	assert.True(t, r.whole(t, next))
	require.NoError(t, r.Delete(t.Context(), kind(t, good, "MachineDeployment")))
	management.Await(t, r, limit, &machines, func() error {
		if len(machines.Items) > 0 {
			return fmt.Errorf("%s is there", machines.Items[0].Name)
		}
		return nil
	}, ofDeployment(f.name))
}

// imageMissing: a mirror does not have an image of the control plane of another Cluster, and the document names the image again.
func (r *rig) imageMissing(t *testing.T) {
	var objects []*unstructured.Unstructured
	for _, o := range small(t) {
		switch o.GetKind() {
		case "MachineDeployment", "MachineBootstrapConfigTemplate", "KubernetesNodeTemplate", kindMachine + "Template":
			continue
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		renamed := &unstructured.Unstructured{}
		text = regexp.MustCompile(`([nN]ame":")(?:alone|kubernetes|site|containerd|control-plane)(-0)?"`).ReplaceAll(text, []byte(`${1}image$2"`))
		require.NoError(t, renamed.UnmarshalJSON(text))
		objects = append(objects, renamed)
	}
	store(t, objects)
	set(t, kind(t, objects, "ContainerRuntime"), map[string]any{cluster.ImageRepository: map[string]any{
		"mirrors": []any{map[string]any{"url": r.url, "ca": r.ca}},
	}}, "spec", "registries")
	node := kind(t, objects, "KubernetesNode")
	set(t, node, map[string]any{"tag": "v0.0.0"}, "spec", "cluster", "dnsImage")
	r.apply(t, objects...)
	ofCluster := client.MatchingLabels{clusterv1.ClusterNameLabel: "image"}
	failed := r.withoutNode(t, ofCluster)
	r.reported(t, failed, failure{
		name: "image", kind: "KubernetesNode", stage: "applying", cause: "an image of the control plane cannot be pulled", remedy: "import the image",
		detail: cluster.ImageRepository + "/coredns:v0.0.0",
	})
	unstructured.RemoveNestedField(node.Object, "spec", "cluster", "dnsImage")
	require.NoError(t, r.Delete(t.Context(), kind(t, objects, "Machine")))
	var machines clusterv1.MachineList
	management.Await(t, r, limit, &machines, func() error {
		if len(machines.Items) > 0 {
			return fmt.Errorf("%s is there", machines.Items[0].Name)
		}
		return nil
	}, ofCluster)
	r.apply(t, objects...)
	r.prepared(t, r.running(t, 1, ofCluster)[0].Spec.InfrastructureRef.Name, 5)
	require.NoError(t, r.Delete(t.Context(), kind(t, objects, "Cluster")))
}

// reported waits for the report of a machine that fails.
func (r *rig) reported(t *testing.T, name string, f failure) {
	t.Helper()
	var last report.Report
	nodestest.Within(t, limit, name+" to fail", func() (ok bool) { // what may pass is tried for minutes
		last, ok = r.report(t, name)
		return ok && last.Outcome == report.RunFailed
	})
	assert.Contains(t, r.failed(t, name), f.detail)
	headline := words.Headline(last, false) // without the output of other programs, which only root gets on the machine
	t.Log(headline)
	r.bootstrapped(t, r.machineOf(t, name).Name, metav1.ConditionFalse, headline)
	r.unready(t, name, headline)
	at := " at " + f.kind + "/" + f.name
	if f.kind == noDocument {
		at = " "
	}
	assert.Contains(t, headline, "Failed"+at)
	assert.Contains(t, headline, " while "+f.stage+": ")
	_, cause, _ := strings.Cut(headline, ": ")
	cause, remedy, _ := strings.Cut(cause, "; remedy: ")
	assert.Contains(t, cause, f.cause)
	assert.Contains(t, remedy, f.remedy)
}

// untouched waits until cloud-init has ended on a machine on which no run has begun.
func (r *rig) untouched(t *testing.T, name string) {
	t.Helper()
	nodestest.Eventually(t, name+" to end its boot", func() bool {
		said, err := r.Node(name).Exec(t.Context(), "test", "-e", "/var/lib/cloud/instance/boot-finished")
		return err == nil && said.ExitCode == 0
	})
	_, ran := r.report(t, name)
	assert.False(t, ran)
}

// whole reports whether a machine has the data of its Machine, as docs/troubleshooting.md compares it.
func (r *rig) whole(t *testing.T, name string) bool {
	t.Helper()
	var machines clusterv1.MachineList
	require.NoError(t, r.List(t.Context(), &machines))
	i := slices.IndexFunc(machines.Items, func(m clusterv1.Machine) bool { return m.Spec.InfrastructureRef.Name == name })
	require.GreaterOrEqual(t, i, 0)
	var data corev1.Secret
	require.NoError(t, r.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: *machines.Items[i].Spec.Bootstrap.DataSecretName}, &data))
	said, err := r.Node(name).Exec(t.Context(), "sha256sum", "/var/lib/cloud/instance/user-data.txt")
	require.NoError(t, err)
	return strings.HasPrefix(said.Stdout, fmt.Sprintf("%x ", sha256.Sum256(data.Data["value"])))
}

// ofDeployment selects what a MachineDeployment has made.
func ofDeployment(name string) client.MatchingLabels {
	return client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: name}
}

// deployment is the MachineDeployment of the examples with one worker that sends its report, and all that it refers to, under names of its own.
// It is deleted when the test ends, which frees the place of its machine.
func (r *rig) deployment(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, o := range small(t) {
		switch o.GetKind() {
		case "Sysctl", "Timesync", "ContainerRuntime", "KubernetesNodeTemplate", "MachineBootstrapConfigTemplate", "MachineDeployment", kindMachine + "Template":
		default:
			continue
		}
		text, err := json.Marshal(o)
		require.NoError(t, err)
		for _, known := range []string{"kubernetes", "site", "containerd", "worker", "worker-1", "alone"} {
			text = []byte(strings.ReplaceAll(string(text), `"name":"`+known+`"`, `"name":"`+name+`"`))
		}
		renamed := &unstructured.Unstructured{}
		require.NoError(t, renamed.UnmarshalJSON(text))
		if o.GetKind() == "MachineBootstrapConfigTemplate" {
			set(t, renamed, []any{r.target()}, "spec", "template", "spec", "documents")
		}
		all = append(all, renamed)
	}
	made := kind(t, all, "MachineDeployment").DeepCopy()
	t.Cleanup(func() { _ = r.Delete(r.t.Context(), made) }) // it need not be there
	return all
}

// kind returns the only object of a kind.
func kind(t testing.TB, objects []*unstructured.Unstructured, kind string) *unstructured.Unstructured {
	t.Helper()
	for _, o := range objects {
		if o.GetKind() == kind {
			return o
		}
	}
	require.Fail(t, "no "+kind)
	return nil
}

// appended returns the step that adds text to a file.
func appended(file, text string) func(root string) error {
	return func(root string) error {
		data, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(root, file), append(data, text...), 0o644) //nolint:gosec // an image's
	}
}

// full returns the step with which a directory is a file system of this size, until the next boot.
func full(directory, size string) func(root string) error {
	const unit = `[Unit]
DefaultDependencies=no
Before=sysinit.target
ConditionPathExists=!/var/full

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mkdir -p %[1]s
ExecStart=touch /var/full
ExecStart=mount -t tmpfs -o size=%[2]s,mode=0755 tmpfs %[1]s
`
	return func(root string) error { return early(root, "full", fmt.Sprintf(unit, directory, size)) }
}
