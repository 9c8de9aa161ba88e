package reference

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestConfigurationsOfKubernetes: in each supported version of Kubernetes an editor and the real command refuse each field of the kubelet's and of
// kube-proxy's configuration with a value of another type, and an unknown key in each mapping, and both name the same field.
func TestConfigurationsOfKubernetes(t *testing.T) {
	t.Parallel()
	whole, bin := editor(t), built(t)
	all, err := configurations(root)
	require.NoError(t, err)
	count := 0
	for _, c := range all {
		minors := slices.Sorted(maps.Values(all[0].since))
		var stream bytes.Buffer
		var broken []string // the document and the field
		for minor := minors[0]; minor <= minors[len(minors)-1]; minor++ {
			var faults []fault
			c.schema.eachFault(nil, func(f fault) { faults = append(faults, f) })
			for batch := range slices.Chunk(faults, 30) { // a document reports up to 100 errors
				name := fmt.Sprintf("n-%d", len(broken))
				config := any(nil)
				for _, f := range batch {
					config = f.into(config)
				}
				doc := map[string]any{
					"apiVersion": v1alpha1.APIVersion, "kind": v1alpha1.KindKubernetesNode, "metadata": map[string]any{"name": name},
					"spec": map[string]any{"role": v1alpha1.ControlPlaneInit, "kubernetesVersion": fmt.Sprintf("v1.%d.1", minor), c.part: map[string]any{"config": config}},
				}
				encoded(t, &stream, doc)
				marked := refusedFields(t, whole, doc)
				for _, f := range batch {
					steps := f.steps
					if top := fmt.Sprint(steps[0]); c.elsewhere[top] != "" || c.since[top] > minor {
						steps = steps[:1]
					}
					field := string(document.PathOf(append([]any{"spec", c.part, "config"}, steps...)...))
					assert.Contains(t, marked, field, "1.%d", minor)
					broken = append(broken, v1alpha1.KindKubernetesNode+"/"+name+": "+field+": ")
				}
			}
		}
		out := refusedBy(t, bin, stream.Bytes())
		for _, field := range broken {
			assert.True(t, strings.Contains(out, field), "no error is at %s", field) // out is long
		}
		count += len(broken)
	}
	assert.Greater(t, count, 1500)
	t.Logf("%d values", count)
}

// fault is a wrong value, or an unknown key, at the steps from the configuration.
type fault struct {
	steps []any
	value any
}

// into adds the fault to a value.
func (f fault) into(value any) any {
	if len(f.steps) == 0 {
		return f.value
	}
	inner := fault{f.steps[1:], f.value}
	if _, item := f.steps[0].(int); item {
		list, _ := value.([]any)
		if len(list) == 0 {
			list = []any{nil}
		}
		list[0] = inner.into(list[0])
		return list
	}
	fields, _ := value.(map[string]any)
	if fields == nil {
		fields = map[string]any{}
	}
	name := fmt.Sprint(f.steps[0])
	fields[name] = inner.into(fields[name])
	return fields
}

// eachFault calls found with a fault of each field with a type, and of each mapping.
func (s *jsonSchema) eachFault(at []any, found func(fault)) {
	below := func(step any) []any { return append(slices.Clip(at), step) }
	values, _ := s.Additional.(*jsonSchema)
	switch {
	case s.Properties != nil:
		found(fault{below("noSuchKey"), 1})
		for _, name := range s.Properties.names {
			s.Properties.schemas[name].eachFault(below(name), found)
		}
	case s.Items != nil:
		s.Items.eachFault(below(0), found)
	case values != nil:
		values.eachFault(below("key"), found)
	case s.types() == nil: // anything
	case slices.Contains(s.types(), "string") && s.Pattern == "":
		found(fault{at, 1})
	default:
		found(fault{at, "@"})
	}
}

// refusedFields returns the fields at which a schema refuses a document.
func refusedFields(t *testing.T, of *jsonschema.Schema, doc any) (all []string) {
	t.Helper()
	var text bytes.Buffer
	encoded(t, &text, doc)
	stream, err := document.Decode("", &text)
	require.NoError(t, err)
	require.Empty(t, stream.Errors)
	found, _ := errors.AsType[*jsonschema.ValidationError](of.Validate(decoded(t, stream.Documents[0])))
	require.NotNil(t, found)
	var visit func(e *jsonschema.ValidationError)
	visit = func(e *jsonschema.ValidationError) {
		field := fieldAt(e.InstanceLocation)
		if unknown, ok := e.ErrorKind.(*kind.AdditionalProperties); ok {
			for _, name := range unknown.Properties {
				all = append(all, field+"."+name)
			}
		} else if len(e.Causes) == 0 {
			all = append(all, field)
		}
		for _, cause := range e.Causes {
			visit(cause)
		}
	}
	visit(found)
	return all
}

// fieldAt is the field at the steps of a JSON pointer. The documents of the test have one item in each list.
func fieldAt(steps []string) string {
	var path []any
	for _, step := range steps {
		if step == "0" {
			path = append(path, 0)
			continue
		}
		path = append(path, step)
	}
	return strings.TrimPrefix(string(document.PathOf(path...)), ".")
}
