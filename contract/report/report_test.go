package report_test

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/report"
)

func TestSchemaAgreesWithTheTypes(t *testing.T) {
	t.Parallel()
	_, err := jsonschema.NewCompiler().Compile("report.schema.json")
	require.NoError(t, err)
	data, err := os.ReadFile("report.schema.json")
	require.NoError(t, err)
	var whole struct {
		node
		Defs map[string]node `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(data, &whole))
	sameFields(t, whole.node, report.Report{})
	for name, value := range map[string]any{
		"stage": report.Stage{}, "wait": report.Wait{}, "reboot": report.Reboot{}, "host": report.Host{}, "document": report.Document{},
		"plugin": report.Plugin{}, "change": report.Change{}, "error": report.Error{},
	} {
		sameFields(t, whole.Defs[name], value)
	}
	assert.Len(t, whole.Defs, 8)
}

type node struct {
	Required   []string                   `json:"required"`
	Properties map[string]json.RawMessage `json:"properties"`
}

// sameFields compares the properties of a schema with the JSON fields of a struct; those that are never left out are
// required.
func sameFields(t *testing.T, n node, value any) {
	t.Helper()
	var all, required, properties []string
	for i := range reflect.TypeOf(value).NumField() {
		name, options, _ := strings.Cut(reflect.TypeOf(value).Field(i).Tag.Get("json"), ",")
		all = append(all, name)
		if options == "" {
			required = append(required, name)
		}
	}
	for name := range n.Properties {
		properties = append(properties, name)
	}
	assert.ElementsMatch(t, all, properties, "%T", value)
	assert.ElementsMatch(t, required, n.Required, "%T", value)
}
