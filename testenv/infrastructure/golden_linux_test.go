package infrastructure

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
	needs "github.com/machineadm/machineadm/internal/require"
	"github.com/machineadm/machineadm/testenv/tools"
)

const (
	keyFile = "etc/machineadm/node.key"
	canary  = "c4n4ry-of-a-registry"

	// encrypted is the stream of an EncryptedConfig.
	encrypted = "apiVersion: machineadm.cluster.x-k8s.io/v1alpha1\nkind: ContainerRuntime\nmetadata: {name: secret}\nspec:\n  provider: containerd\n  cgroupDriver: cgroupfs\n" +
		"  sandboxImage: testenv.invalid/pause:3.10.2\n  registries:\n    registry.example.com:\n" +
		"      mirrors: [{url: https://mirror.example.com}]\n      auth: {username: puller, password: {value: " + canary + "}}\n"
)

// TestGolden: workers come and go with the replicas, every kind of document is applied, with a reboot in the middle, and a worker joins a
// domain.
func TestGolden(t *testing.T) {
	needs.Campaign(t)
	passphrase := strings.Repeat("a passphrase ", 3)
	var r *rig
	r = layout{machines: 4, images: map[string]func(string) error{
		"keyed": keyed(t, passphrase), "resolving": func(root string) error { return resolving(r, root) },
	}}.start(t)
	r.controlPlane(t)
	t.Run("each", func(t *testing.T) {
		t.Run("replicas", func(t *testing.T) { t.Parallel(); r.scaled(t) })
		t.Run("documents", func(t *testing.T) { t.Parallel(); r.allDocuments(t, passphrase) })
	})
	t.Run("domain", r.memberOfDomain) // alone: its domain has two nodes more
	r.deleted(t)
}

// keyed returns the step that adds the key of an EncryptedConfig and a plugin that asks for a reboot.
func keyed(t *testing.T, passphrase string) func(root string) error {
	t.Helper()
	const plugin = "machineadm-noop-plugin-test"
	dir := t.TempDir()
	require.NoError(t, tools.Products(t.Context(), dir, map[string]string{plugin: "testenv/noop"}))
	return func(root string) error {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(keyFile)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(root, keyFile), []byte(passphrase), 0o600); err != nil {
			return err
		}
		return needs.CopyProgram(filepath.Join(root, "usr/libexec/machineadm", plugin), filepath.Join(dir, plugin))
	}
}

// scaled: a MachineDeployment of one worker gets another and loses it.
func (r *rig) scaled(t *testing.T) {
	objects := r.deployment(t, "replicas")
	deployment := kind(t, objects, "MachineDeployment")
	r.apply(t, objects...)
	for _, replicas := range []int64{1, 2, 1} {
		set(t, deployment, replicas, "spec", "replicas")
		r.apply(t, deployment)
		for _, m := range r.running(t, int(replicas), ofDeployment("replicas")) {
			r.prepared(t, m.Spec.InfrastructureRef.Name, 5)
		}
	}
}

// allDocuments: a worker gets documents of all kinds but DomainJoin, in the data, encrypted in it, and from a server.
func (r *rig) allDocuments(t *testing.T, passphrase string) {
	sealed, err := envelope.Seal("secret", "file", "file:///"+keyFile, nil, []byte(passphrase), []byte(encrypted))
	require.NoError(t, err)
	var spec map[string]any
	text, err := json.Marshal(sealed.Spec)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &spec))
	place := func(apiVersion, kind, name string, spec map[string]any) map[string]any {
		return map[string]any{"apiVersion": apiVersion, "kind": kind, "name": name, "before": []any{"KubernetesNode"}, "spec": spec}
	}
	objects := r.deployment(t, "documents")
	config := kind(t, objects, "MachineBootstrapConfigTemplate")
	refs, _, err := unstructured.NestedSlice(config.Object, "spec", "template", "spec", "pluginRefs")
	require.NoError(t, err)
	set(t, config, refs[:2], "spec", "template", "spec", "pluginRefs") // the encrypted ContainerRuntime is in the place of the other
	set(t, config, []any{
		place(contract.APIVersion, contract.KindRemoteConfig, "site", map[string]any{
			"provider": "http", "uri": r.url + "/stream", "sha256": fmt.Sprintf("%x", sha256.Sum256([]byte(remote))),
			"providerConfig": map[string]any{"ca": r.ca},
		}),
		place("example.com/v1", "Noop", "reboot", map[string]any{"provider": "test", "reboot": "BeforeNext", "touch": []any{"/var/rebooted"}}),
		place(contract.APIVersion, contract.KindEncryptedConfig, "secret", spec),
		r.target(),
	}, "spec", "template", "spec", "documents")
	set(t, kind(t, objects, kindMachine+"Template"), "keyed", "spec", "template", "spec", "image")
	r.apply(t, objects...)
	r.withoutNode(t, ofDeployment("documents"))
	token := r.token(t, "documents")
	inProcesses := processes(t, canary, passphrase, token)
	machine := r.running(t, 1, ofDeployment("documents"))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 9)
	assert.Empty(t, inProcesses())
	last, ok := r.of(machine)
	require.True(t, ok)
	documents := ""
	for _, d := range last.Documents {
		documents += " " + d.Kind
	}
	assert.Equal(t, " Sysctl Timesync RemoteConfig Sysctl Noop EncryptedConfig ContainerRuntime KubernetesNode ReportTarget", documents)
	r.secret(t, machine, token, "^/var/lib/cloud/") // cloud-init keeps the user data
	r.secret(t, machine, passphrase, "^/"+keyFile+"$")
	r.secret(t, machine, canary, "^/etc/containerd/conf.d/zz-machineadm.toml$")
}
