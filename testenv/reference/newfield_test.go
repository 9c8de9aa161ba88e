package reference

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/examples"
)

// TestANewField: with the struct, the example and the plugin changed as CONTRIBUTING.md says, and nothing else, the new field of a kind is in the schema,
// the custom resource, the page, explain and the examples, and the plugin gets it with its rule. The checkout is not changed: a directory has
// the packages that the generator reads, and the compiler takes the changed files from it.
func TestANewField(t *testing.T) {
	t.Parallel()
	scratch, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	checkout, err := filepath.Abs(root)
	require.NoError(t, err)
	for _, dir := range append(Directories(checkout), filepath.Join(checkout, "plugins/sysctl/procfs")) {
		below, err := filepath.Rel(checkout, dir)
		require.NoError(t, err)
		require.NoError(t, os.CopyFS(filepath.Join(scratch, below), os.DirFS(dir)))
	}
	overlay := map[string]string{} // by the files of the checkout
	change := func(file, before, added string) {
		text, err := os.ReadFile(filepath.Join(scratch, file))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), before), file)
		require.NoError(t, os.WriteFile(filepath.Join(scratch, file), []byte(strings.Replace(string(text), before, added+before, 1)), 0o600))
		overlay[filepath.Join(checkout, file)] = filepath.Join(scratch, file)
	}
	change("contract/v1alpha1/sysctl.go", "\t// IgnoreMissing lists", "\t// Color is the color of the kernel: red or green.\n\t//\n"+
		"\t// +kubebuilder:validation:Enum=red;green\n\tColor string `json:\"color,omitempty\"`\n")
	change("contract/v1alpha1/examples/"+v1alpha1.KindSysctl+examples.Full+".yaml", "  ignoreMissing:\n", "  color: red\n")
	change("plugins/sysctl/procfs/desired.go", "\tr.ignoreMissing()\n", "\tif spec := r.spec; spec.Color == \"red\" {\n\t\tr.warn(\"spec.color\", \"is old\")\n\t}\n")

	s, err := Read(Directories(scratch)...)
	require.NoError(t, err)
	schemas, err := s.Schemas(checkout)
	require.NoError(t, err)
	file := filepath.Join(SchemaDirectory, v1alpha1.KindSysctl+".json")
	require.NoError(t, os.WriteFile(filepath.Join(scratch, file), schemas[v1alpha1.KindSysctl+".json"], 0o600))
	overlay[filepath.Join(checkout, file)] = filepath.Join(scratch, file)
	page, err := Page(s, scratch)
	require.NoError(t, err)
	assert.Contains(t, string(page), "| `spec.color` | string |  |  | The color of the kernel: red or green. |\n")
	definitions, err := s.Definitions(checkout)
	require.NoError(t, err)
	assert.Contains(t, string(definitions[filepath.Join(Definitions, v1alpha1.Group+"_sysctls.yaml")]), "color:\n")

	replace := filepath.Join(scratch, "overlay.json")
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(replace, data, 0o600))
	bin := t.TempDir()
	for pkg, name := range map[string]string{"./host/cmd/machineadm": "machineadm", "./plugins/sysctl/procfs": naming.Prefix(v1alpha1.KindSysctl) + "procfs"} {
		c := exec.CommandContext(t.Context(), "go", "build", "-overlay", replace, "-o", filepath.Join(bin, name), pkg)
		c.Dir = checkout
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	command := filepath.Join(bin, "machineadm")
	example, err := exec.CommandContext(t.Context(), command, "explain", v1alpha1.KindSysctl, "--example=full").Output()
	require.NoError(t, err)
	assert.Contains(t, string(example), "\n  # The color of the kernel: red or green.\n  color: red\n")
	stream := filepath.Join(t.TempDir(), "node.yaml")
	require.NoError(t, os.WriteFile(stream, example, 0o600))
	out, err := exec.CommandContext(t.Context(), command, "validate", "--plugin-dir", bin, "--path", stream).CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "spec.color: is old")
	assert.Contains(t, refusedBy(t, bin, []byte(strings.Replace(string(example), "color: red", "color: gren", 1))),
		"spec.color: is not a value of this field\n  hint: did you mean green?\n")
}
