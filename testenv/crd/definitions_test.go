package crd_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	capi "sigs.k8s.io/cluster-api/util/contract"

	"github.com/machineadm/machineadm/contract/document"
	contract "github.com/machineadm/machineadm/contract/v1alpha1"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
)

const (
	root      = "../.."
	directory = root + "/host/controller/config/crd"
	// maxApplied is the limit of annotations, one of which is the whole object after kubectl apply.
	maxApplied = 256 << 10
)

// definitions returns the definitions of the checkout, by kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(directory + "/*_*.yaml") // GROUP_PLURAL
	require.NoError(t, err)
	all := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		d := &apiextensionsv1.CustomResourceDefinition{}
		fromYAML(t, text, d)
		all[d.Spec.Names.Kind] = d
	}
	require.Len(t, all, 2*len(contract.MachineKinds())+4)
	return all
}

func fromYAML(t *testing.T, text []byte, into any) {
	t.Helper()
	data, err := document.JSON("", text)
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(into))
}

func schemaOf(d *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	return *d.Spec.Versions[0].Schema.OpenAPIV3Schema
}

// TestContractOfClusterAPI: Cluster API finds a definition by its name, and the version by its labels. clusterctl moves all objects but
// configs and their claims, which it finds by the Machines.
func TestContractOfClusterAPI(t *testing.T) {
	t.Parallel()
	for kind, d := range definitions(t) {
		assert.Equal(t, capi.CalculateCRDName(d.Spec.Group, kind), d.Name)
		labels := map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha1", "cluster.x-k8s.io/v1beta2": "v1alpha1"}
		if kind != bootstrap.KindMachineBootstrapConfig && kind != bootstrap.KindMachineBootstrapDataClaim {
			labels["clusterctl.cluster.x-k8s.io/move"] = ""
		}
		assert.Equal(t, labels, d.Labels, kind)
		assert.Equal(t, []string{"cluster-api"}, d.Spec.Names.Categories, kind)
		columns := d.Spec.Versions[0].AdditionalPrinterColumns
		require.NotEmpty(t, columns, kind)
		assert.Equal(t, "Age", columns[len(columns)-1].Name, kind)
	}
	for _, kind := range contract.MachineKinds() {
		assert.Contains(t, definitions(t), kind)
		assert.Contains(t, definitions(t), kind+"Template")
	}
}

func TestSizes(t *testing.T) {
	t.Parallel()
	for kind, d := range definitions(t) {
		data, err := json.Marshal(d)
		require.NoError(t, err)
		assert.Less(t, len(data), maxApplied, kind)
		t.Logf("%s: %d KiB", kind, len(data)>>10)
	}
}

// TestEveryFieldIsExplained: kubectl explain shows the comments of the contract.
func TestEveryFieldIsExplained(t *testing.T) {
	t.Parallel()
	for kind, d := range definitions(t) {
		spec := schemaOf(d).Properties["spec"]
		count := 0
		visit("spec", spec, func(at string, s apiextensionsv1.JSONSchemaProps, item bool) {
			count++
			assert.True(t, item || s.Description != "", "%s: %s has no description", kind, at)
		})
		assert.Greater(t, count, 5, kind)
	}
}

// visit calls found with each schema below one; item is true for the schemas of items of lists and maps.
func visit(at string, s apiextensionsv1.JSONSchemaProps, found func(at string, s apiextensionsv1.JSONSchemaProps, item bool)) {
	var walk func(at string, s apiextensionsv1.JSONSchemaProps, item bool)
	walk = func(at string, s apiextensionsv1.JSONSchemaProps, item bool) {
		found(at, s, item)
		names := make([]string, 0, len(s.Properties))
		for name := range s.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			walk(at+"."+name, s.Properties[name], false)
		}
		if s.Items != nil {
			walk(at+"[0]", *s.Items.Schema, true)
		}
		if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
			walk(at+"[k]", *s.AdditionalProperties.Schema, true)
		}
	}
	walk(at, s, false)
}
