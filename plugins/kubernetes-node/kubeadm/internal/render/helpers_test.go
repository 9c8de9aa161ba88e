package render_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/release"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings"
	"github.com/machineadm/machineadm/plugins/kubernetes-node/kubeadm/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

var update = flag.Bool("update", false, "write the golden files")

// versions returns the releases of kubeadm that the golden files are for.
func versions() []string { return []string{"v1.30.14", "v1.31.0", "v1.36.3", "v1.37.1"} }

func version(t testing.TB, text string) release.Version {
	t.Helper()
	v, err := release.Parse(text)
	require.NoError(t, err)
	return v
}

// documents returns the names of the documents.
func documents(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/documents/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".yaml")
	}
	return files
}

// read returns a document for a version of Kubernetes as a tree of JSON.
func read(t testing.TB, name, kubernetes string) map[string]any {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata/documents", name+".yaml"))
	require.NoError(t, err)
	var tree map[string]any
	require.NoError(t, json.Unmarshal(settingstest.JSON(t, strings.ReplaceAll(string(text), "@VERSION@", kubernetes)), &tree))
	return tree
}

// host is a machine with the sources of values.
func host(t testing.TB, name string) machine.Machine {
	t.Helper()
	f := machinetest.New(t)
	f.WriteFiles(t, map[string]string{
		"/etc/hosts":         "127.0.0.1 localhost\n192.0.2.9 node.example.com node # the machine\n",
		"/etc/passwd":        "root:x:0:0::/root:/bin/sh\nkube:x:900:901::/:/bin/false\n",
		"/etc/group":         "root:x:0:\nkube:x:901:\n",
		"/run/instance.json": `{"v1": {"zone": "eu-1a", "instance_id": "node"}}`,
		"/run/metadata":      "# of this machine\nADDRESS=192.0.2.9\nINSTANCE=\"i-9\"\n",
	})
	if name == "windows" {
		f.Machine.Target.OS = "windows"
	}
	return f.Machine
}

func resolve(t testing.TB, m machine.Machine, tree map[string]any) (settings.Settings, []sdk.Violation, error) {
	t.Helper()
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	return settings.Resolve(m, settingstest.Document(t, data))
}

// golden compares a text with a golden file; an empty text has none.
func golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata/golden", name)
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if got == "" {
			_ = os.Remove(path) // mostly absent
		} else {
			require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
		}
	}
	want, err := os.ReadFile(path)
	if got != "" || !os.IsNotExist(err) {
		require.NoError(t, err)
		require.Equal(t, string(want), got, path)
	}
}

// without returns a copy of a tree without a field. Without its target, a patch goes altogether.
func without(t testing.TB, tree map[string]any, field string) map[string]any {
	t.Helper()
	data, err := json.Marshal(tree)
	require.NoError(t, err)
	var result map[string]any
	require.NoError(t, json.Unmarshal(data, &result))
	remove(result, stepsOf(field))
	return result
}

func stepsOf(field string) []string {
	var steps []string
	for _, part := range regexp.MustCompile(`\["([^"]*)"\]|\[(\d+)\]|\.?([A-Za-z_][\w-]*)`).FindAllStringSubmatch(field, -1) {
		steps = append(steps, part[1]+part[2]+part[3])
	}
	return steps
}

func remove(value any, steps []string) any {
	switch v := value.(type) {
	case map[string]any:
		if len(steps) == 1 {
			delete(v, steps[0])
		} else {
			v[steps[0]] = remove(v[steps[0]], steps[1:])
		}
	case []any:
		i, err := strconv.Atoi(steps[0])
		if err != nil || i >= len(v) {
			break
		}
		if len(steps) == 1 || slices.Equal(steps[1:], []string{"target"}) {
			return slices.Delete(v, i, i+1)
		}
		v[i] = remove(v[i], steps[1:])
	}
	return value
}
