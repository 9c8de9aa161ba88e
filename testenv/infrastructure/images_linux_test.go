package infrastructure

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machineadm/machineadm/contract/report"
	needs "github.com/machineadm/machineadm/internal/require"
)

// TestImages: the image of a distribution with a read-only /usr, and an image that the documents have prepared.
func TestImages(t *testing.T) {
	needs.Campaign(t)
	documents := filepath.Join(t.TempDir(), "node.yaml")
	r := layout{machines: 3, images: map[string]func(string) error{"immutable": immutable, "baked": baked(t, documents)}}.start(t)
	r.controlPlane(t)
	t.Run("each", func(t *testing.T) {
		t.Run("immutable", func(t *testing.T) { t.Parallel(); r.immutable(t, "immutable") })
		t.Run("egress", func(t *testing.T) { t.Parallel(); r.immutable(t, "egress", "192.0.2.1") })
		t.Run("baked", func(t *testing.T) { t.Parallel(); r.baked(t, documents) })
	})
	r.deleted(t)
}

// immutable moves what the packages have in /usr to /opt, and makes /usr read-only. It has no time servers, which chronyd would look for
// before the documents are applied.
func immutable(root string) error {
	const unit = `[Unit]
DefaultDependencies=no
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=mount --bind /usr /usr
ExecStart=mount -o remount,bind,ro /usr
`
	const chrony = "etc/chrony/chrony.conf"
	text, err := os.ReadFile(filepath.Join(root, chrony))
	text = regexp.MustCompile("(?m)^pool .*$").ReplaceAll(text, nil)
	return errors.Join(
		err, os.WriteFile(filepath.Join(root, chrony), text, 0o644), //nolint:gosec // an image's
		os.MkdirAll(filepath.Join(root, "opt/bin"), 0o755),
		os.MkdirAll(filepath.Join(root, "opt/machineadm"), 0o755),
		os.Rename(filepath.Join(root, "usr/bin/machineadm"), filepath.Join(root, "opt/bin/machineadm")),
		os.Rename(filepath.Join(root, "usr/libexec/machineadm"), filepath.Join(root, "opt/machineadm/plugins")),
		early(root, "read-only", unit),
	)
}

// early makes a unit that runs at the begin of each boot.
func early(root, name, unit string) error {
	wants := filepath.Join(root, "etc/systemd/system/sysinit.target.wants")
	return errors.Join(
		os.MkdirAll(wants, 0o755),
		os.WriteFile(filepath.Join(root, "etc/systemd/system", name+".service"), []byte(unit), 0o644), //nolint:gosec // an image's
		os.Symlink("../"+name+".service", filepath.Join(wants, name+".service")),
	)
}

// immutable: Ignition brings the documents, machineadm and its plugins are in /opt, and the machine sends to the members of its network
// alone, but to time servers elsewhere.
func (r *rig) immutable(t *testing.T, name string, elsewhere ...string) {
	objects := r.deployment(t, name)
	set(t, kind(t, objects, kindMachine+"Template"), "immutable", "spec", "template", "spec", "image")
	set(t, kind(t, objects, "MachineBootstrapConfigTemplate"), map[string]any{"type": "ignition"}, "spec", "template", "spec", "format")
	set(t, kind(t, objects, "KubernetesNodeTemplate"),
		map[string]any{"file": "/run/metadata/flatcar", "key": "COREOS_CUSTOM_INSTANCE_ID", "prefix": Prefix},
		"spec", "template", "spec", "node", "providerIDFrom")
	servers := []any{map[string]any{"address": "ntp1.example.com"}}
	for _, server := range elsewhere {
		servers = append(servers, map[string]any{"address": server})
	}
	set(t, kind(t, objects, "Timesync"), servers, "spec", "servers")
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment(name))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 5)
	last, _ := r.of(machine)
	for _, d := range last.Documents {
		assert.Regexp(t, "^/opt/machineadm/plugins/", d.Plugin.Path)
	}
	said, err := r.Node(machine).Exec(t.Context(), "touch", "/usr/written")
	require.NoError(t, err)
	assert.Contains(t, said.Stderr, "Read-only file system")
	sent := r.Node(machine).Egress(t)
	t.Log(sent)
	network := netip.PrefixFrom(r.address, 24).Masked()
	var outside []string
	for _, to := range regexp.MustCompile(`\. ([0-9.]+) \.`).FindAllStringSubmatch(sent, -1) {
		if at, err := netip.ParseAddr(to[1]); err != nil || !network.Contains(at) || at == r.network.Address("gateway") {
			outside = append(outside, to[1])
		}
	}
	assert.Contains(t, sent, "tcp . "+r.address.String())
	assert.Equal(t, elsewhere, outside)
}

// baked returns the step that prepares an image by documents, as docs/baking-images.md has it.
func baked(t *testing.T, documents string) func(root string) error {
	t.Helper()
	return func(root string) error {
		for _, arguments := range [][]string{{"apply", "--path", documents, "--phase", "preparation"}, {"clean"}} {
			command := exec.CommandContext(t.Context(), filepath.Join(root, "usr/bin/machineadm"), append(arguments, "--root", root)...)
			command.Env = append(os.Environ(), "PATH="+os.Getenv("PATH"))
			if arguments[0] == "apply" {
				command.Args = append(command.Args, "--plugin-dir", filepath.Join(root, "usr/libexec/machineadm"))
			}
			if out, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w: %s", arguments, err, out)
			}
		}
		return nil
	}
}

// baked: no file of the documents before KubernetesNode is written at the first boot, because the image has them.
func (r *rig) baked(t *testing.T, documents string) {
	objects := r.deployment(t, "baked")
	var stream []byte
	for _, o := range objects {
		if k := o.GetKind(); k == "Sysctl" || k == "Timesync" || k == "ContainerRuntime" {
			spec, _, err := unstructured.NestedMap(o.Object, "spec")
			require.NoError(t, err)
			document, err := json.Marshal(map[string]any{
				"apiVersion": o.GetAPIVersion(), "kind": k, "metadata": map[string]any{"name": o.GetName()}, "spec": spec,
			})
			require.NoError(t, err)
			stream = append(append(stream, document...), "\n---\n"...)
		}
	}
	require.NoError(t, os.WriteFile(documents, stream, 0o600))
	set(t, kind(t, objects, kindMachine+"Template"), "baked", "spec", "template", "spec", "image")
	r.apply(t, objects...)
	machine := r.running(t, 1, ofDeployment("baked"))[0].Spec.InfrastructureRef.Name
	r.prepared(t, machine, 5)
	last, ok := r.report(t, machine)
	require.True(t, ok)
	for _, d := range last.Documents[:3] {
		for _, c := range d.Changes {
			assert.NotRegexp(t, "^file:", c.ID, d.Kind)
		}
	}
	assert.Equal(t, report.Changed, last.Documents[3].Outcome)
}
