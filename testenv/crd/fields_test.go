package crd_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/controller/emit"
	"github.com/machineadm/machineadm/host/controller/render"
	"github.com/machineadm/machineadm/testenv/tools"
)

// testFields: of each document of the reference without one of its fields or items, in turn, the plugin accepts what the API server and the
// controller accept, and of each Sysctl of the conformance cases. Those of other kinds are refused more often, because a provider has less than
// another, or a system. The fields of a KubernetesNode depend on a role; TestSharedByRoles of testenv/kubernetesnode has them.
func testFields(t *testing.T, c client.Client) {
	dir := t.TempDir()
	require.NoError(t, tools.All(t.Context(), dir))
	counts := map[string]int{}
	for _, s := range samples(t) {
		if known := s.Kind == contract.KindSysctl || strings.Contains(s.file, "/v1alpha1/examples/"); s.Kind == contract.KindKubernetesNode || !known {
			continue
		}
		data, err := s.JSON()
		require.NoError(t, err)
		var whole map[string]any
		require.Empty(t, document.Unmarshal(data, &whole))
		known := secrets{}
		resource, ok := known.resource(whole, reflect.TypeOf(contract.New(s.Kind)).Elem()).(map[string]any)
		require.True(t, ok)
		each("spec", resource["spec"], func(at string, spec any) {
			stream, by := accepted(t, c, s.Kind, spec, known)
			if counts[by]++; stream == nil {
				return
			}
			file := filepath.Join(dir, "node.yaml")
			require.NoError(t, os.WriteFile(file, stream, 0o600))
			out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "machineadm"), "validate", "--plugin-dir", dir, "--path", file).CombinedOutput()
			assert.NoError(t, err, "%s without %s: %s", s.file, at, out)
		})
	}
	t.Logf("accepted, or refused by: %v", counts)
	for _, by := range []string{"accepted", "the API server", "the controller"} {
		assert.Positive(t, counts[by], by)
	}
}

// accepted is the stream that the controller makes of an object, or what refuses it.
func accepted(t *testing.T, c client.Client, kind string, spec any, known secrets) (stream []byte, by string) {
	t.Helper()
	if c.Create(t.Context(), object(kind, "fields", spec), client.DryRunAll) != nil {
		return nil, "the API server"
	}
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	rendered, err := render.Contract(contract.APIVersion, kind, text, known.lookup)
	if err == nil {
		header := contract.Header{APIVersion: contract.APIVersion, Kind: kind, Metadata: contract.Metadata{Name: "node"}}
		stream, err = emit.Stream([]emit.Document{{Header: header, Spec: rendered}})
	}
	if err != nil {
		return nil, "the controller"
	}
	return stream, "accepted"
}

// each calls found with the value without one of its fields or items, of any depth, for each in turn.
func each(at string, value any, found func(at string, value any)) {
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			rest := maps.Clone(v)
			delete(rest, name)
			found(at+"."+name, rest)
			each(at+"."+name, v[name], func(at string, inner any) {
				changed := maps.Clone(v)
				changed[name] = inner
				found(at, changed)
			})
		}
	case []any:
		for i := range v {
			item := fmt.Sprintf("%s[%d]", at, i)
			found(item, slices.Delete(slices.Clone(v), i, i+1))
			each(item, v[i], func(at string, inner any) {
				changed := slices.Clone(v)
				changed[i] = inner
				found(at, changed)
			})
		}
	}
}
