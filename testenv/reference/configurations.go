package reference

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// configurationFields has the fields of configurations of Kubernetes, by which the plugin kubeadm checks a document, below the root of a checkout.
const configurationFields = "plugins/kubernetes-node/kubeadm/internal/settings/fields.txt"

// configuration is a configuration of Kubernetes. A KubernetesNode has fields of it by their own names, in config of a part of its spec.
type configuration struct {
	kind, part string
	elsewhere  map[string]string // what sets the fields that config must not have
	schema     *jsonSchema
	since      map[string]int // the first minor version of Kubernetes that has a field
}

// configurations reads the fields. It is an error if a part of a field came later than the field itself.
func configurations(root string) ([]configuration, error) {
	table, err := os.ReadFile(filepath.Join(root, configurationFields))
	if err != nil {
		return nil, err
	}
	all := []configuration{
		{kind: "KubeletConfiguration", part: "kubelet", elsewhere: v1alpha1.Kubelet{}.Elsewhere()},
		{kind: "KubeProxyConfiguration", part: "kubeProxy", elsewhere: v1alpha1.KubeProxy{}.Elsewhere()},
	}
	for i := range all {
		c := &all[i]
		c.schema, c.since = &jsonSchema{}, map[string]int{}
		for line := range strings.Lines(string(table)) {
			f := strings.Fields(line)
			if f[0] != c.kind {
				continue
			}
			steps := regexp.MustCompile(`[^.{}[\]]+|{}|\[\]`).FindAllString(f[1], -1)
			minor, err := strconv.Atoi(f[3])
			if first := c.since[steps[0]]; err != nil || first != 0 && first != minor {
				return nil, fmt.Errorf("%s: %s of %s has parts of several versions", configurationFields, steps[0], c.kind)
			}
			c.since[steps[0]] = minor
			at := c.schema
			for _, step := range steps {
				at = at.inside(step)
			}
			at.typed(f[2])
		}
	}
	return all, nil
}

// inside returns the schema of what a step leads to: a field by its name, an item of a list by [], a value of a mapping by {}. A schema that is
// missing is added.
func (s *jsonSchema) inside(step string) *jsonSchema {
	if step == "[]" {
		s.Type = orNull("array")
		if s.Items == nil {
			s.Items = &jsonSchema{}
		}
		return s.Items
	}
	s.Type = orNull("object")
	if step == "{}" {
		values, ok := s.Additional.(*jsonSchema)
		if !ok {
			values = &jsonSchema{}
			s.Additional = values
		}
		return values
	}
	if s.Properties == nil {
		s.Additional, s.Properties = false, &properties{schemas: map[string]*jsonSchema{}}
	}
	if s.Properties.schemas[step] == nil {
		s.Properties.add(step, &jsonSchema{})
	}
	return s.Properties.schemas[step]
}

// orNull is a type whose value may be null, which is the default of Kubernetes.
func orNull(what string) []string { return []string{what, "null"} }

// types are the types of a field of a configuration, none for anything.
func (s *jsonSchema) types() []string {
	all, _ := s.Type.([]string)
	return all
}

// typed sets a type of the table.
func (s *jsonSchema) typed(what string) {
	bounds := func(least, most int64) {
		s.Type, s.Minimum, s.Maximum = orNull("integer"), &least, &most
	}
	switch what {
	case "any":
	case "bool":
		s.Type = orNull("boolean")
	case "int32":
		bounds(-1<<31, 1<<31-1)
	case "uint32":
		bounds(0, 1<<32-1)
	case "int64":
		s.Type = orNull("integer")
	case "float32", "float64":
		s.Type = orNull("number")
	case "duration":
		s.Type, s.Pattern = orNull("string"), `^[+-]?(?:0|(?:(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+)$`
	case "quantity":
		s.Type, s.Pattern = []string{"string", "number", "null"}, `^[0-9]+(?:\.[0-9]+)?(?:[KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$`
	default:
		s.Type = orNull(what)
	}
}

// file is the schema of the config of a document.
func (c configuration) file() *jsonSchema {
	root := *c.schema
	root.Schema, root.Title, root.Type = draft, c.kind, "object"
	root.Description = "What spec." + c.part + ".config of a KubernetesNode may have of " + c.kind + "."
	fields := &properties{names: c.schema.Properties.names, schemas: maps.Clone(c.schema.Properties.schemas)}
	for _, name := range slices.Sorted(maps.Keys(c.elsewhere)) {
		fields.add(name, &jsonSchema{Description: "Is set by " + c.elsewhere[name] + ".", Not: &jsonSchema{}})
	}
	root.Properties = fields
	return &root
}

// documentRules are what document.json has of a configuration: where it is, and what an older version of Kubernetes does not have. The schema of
// the kind has neither, because plugins send it as a whole.
func (c configuration) documentRules() []any {
	type object = map[string]any
	in := func(path string, schema any) any {
		for _, name := range slices.Backward(strings.Split(path, ".")) {
			schema = object{"properties": object{name: schema}}
		}
		return schema
	}
	rule := func(version, config any) any {
		of := object{"apiVersion": object{"const": v1alpha1.APIVersion}, "kind": object{"const": v1alpha1.KindKubernetesNode}}
		if version != nil {
			of["spec"] = in("kubernetesVersion", version)
		}
		return object{"if": object{"properties": of}, "then": in("spec."+c.part+".config", config)}
	}
	rules := []any{rule(nil, object{"$ref": c.kind + ".json"})}
	minors := slices.Sorted(maps.Values(c.since))
	oldest := minors[0]
	for _, minor := range slices.Compact(minors)[1:] {
		var older []string
		for m := oldest; m < minor; m++ {
			older = append(older, strconv.Itoa(m))
		}
		missing := object{}
		for name, first := range c.since {
			if first == minor {
				missing[name] = object{"description": fmt.Sprintf("Is a field from Kubernetes 1.%d on.", minor), "not": object{}}
			}
		}
		rules = append(rules, rule(object{"pattern": `^v1\.(?:` + strings.Join(older, "|") + `)\.`}, object{"properties": missing}))
	}
	return rules
}

// restrict adds rules to a custom resource: its config does not have the fields that others set. CEL sees only fields with a type.
func (c configuration) restrict(spec *apiextensionsv1.JSONSchemaProps) {
	part := spec.Properties[c.part]
	config := part.Properties["config"]
	config.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	for _, name := range slices.Sorted(maps.Keys(c.elsewhere)) {
		field := apiextensionsv1.JSONSchemaProps{Type: "string", Description: "Is set by " + c.elsewhere[name] + "."}
		if known := c.schema.Properties.schemas[name]; known != nil {
			field.Type = known.types()[0]
		}
		yes := true
		switch field.Type {
		case "object":
			field.XPreserveUnknownFields = &yes
		case "array":
			field.Items = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}}
		}
		config.Properties[name] = field
		part.XValidations = append(part.XValidations, apiextensionsv1.ValidationRule{
			Rule: fmt.Sprintf("!has(self.config) || !has(self.config.%s)", name), Message: name + " is set by " + c.elsewhere[name], FieldPath: ".config." + name,
		})
	}
	part.Properties["config"] = config
	spec.Properties[c.part] = part
}
