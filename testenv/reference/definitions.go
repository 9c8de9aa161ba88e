package reference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// resourceOnly is what custom resources have and documents have not, or in another form.
type resourceOnly struct {
	comment                 string // as it is in the source, without markers
	filled                  string // by the controller: a sentence for the comment
	secret, unsigned        bool
	maxItems, maxProperties *int64
	expressions             []apiextensionsv1.ValidationRule
}

const secretComment = "SecretValue is a confidential value. It is in a Secret, never in a custom resource."

// filled returns the fields that a document must have and the controller fills in, with a sentence for their comments.
func filled() map[string]string {
	return map[string]string{
		"KubernetesNodeSpec.role":              "By default the controller derives it from the Machine.",
		"KubernetesNodeSpec.kubernetesVersion": "By default the controller takes it from the Machine.",
	}
}

// columns are those that kubectl prints for a kind, as name and path, beside provider and age.
func columns() map[string][][2]string {
	return map[string][][2]string{
		v1alpha1.KindContainerRuntime: {{"Sandbox Image", ".spec.sandboxImage"}},
		v1alpha1.KindTimesync:         {{"Profile", ".spec.profile"}},
		v1alpha1.KindSysctl:           {{"Profiles", ".spec.profiles"}},
		v1alpha1.KindDomainJoin:       {{"Domain", ".spec.domain"}, {"State", ".spec.state"}},
		v1alpha1.KindKubernetesNode:   {{"Role", ".spec.role"}, {"Version", ".spec.kubernetesVersion"}},
	}
}

// Definitions returns the custom resource definitions of the document kinds and of their templates, by the path of the file below the
// root of a checkout. What every resource has is taken from the MachineBootstrapConfigTemplate's, which controller-gen writes.
func (s *Source) Definitions(root string) (map[string][]byte, error) {
	base, err := readDefinition(filepath.Join(root, Definitions, "bootstrap.cluster.x-k8s.io_machinebootstrapconfigtemplates.yaml"))
	if err != nil {
		return nil, err
	}
	configurations, err := configurations(root)
	if err != nil {
		return nil, err
	}
	out := map[string][]byte{}
	for _, kind := range v1alpha1.MachineKinds() {
		whole := s.object(kindsPackage+"."+kind, nil)
		if s.err != nil {
			return nil, s.err
		}
		spec := resource(whole.Properties.schemas["spec"])
		if kind == v1alpha1.KindKubernetesNode {
			spec.XValidations = append(roleRules(), spec.XValidations...)
			for _, c := range configurations {
				c.restrict(&spec)
			}
		}
		object := definition(base, kind, whole.comment, spec)
		printed := []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Provider", Type: "string", JSONPath: ".spec.provider"}}
		for _, c := range columns()[kind] {
			printed = append(printed, apiextensionsv1.CustomResourceColumnDefinition{Name: c[0], Type: "string", JSONPath: c[1]})
		}
		version := &object.Spec.Versions[0]
		version.AdditionalPrinterColumns = append(printed, version.AdditionalPrinterColumns...)
		template := definition(base, kind+"Template", kind+"Template is a "+kind+" for each machine of a set.", templateSpec(kind, spec, base))
		for _, d := range []*apiextensionsv1.CustomResourceDefinition{object, template} {
			file := filepath.Join(Definitions, v1alpha1.Group+"_"+d.Spec.Names.Plural+".yaml")
			if out[file], err = encode(d); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// definition returns a copy of the base for another kind and another spec.
func definition(base *apiextensionsv1.CustomResourceDefinition, kind, about string, spec apiextensionsv1.JSONSchemaProps) *apiextensionsv1.CustomResourceDefinition {
	d := base.DeepCopy()
	singular := strings.ToLower(kind)
	d.Name, d.Annotations, d.Spec.Group = singular+"s."+v1alpha1.Group, nil, v1alpha1.Group
	d.Spec.Names = apiextensionsv1.CustomResourceDefinitionNames{
		Kind: kind, ListKind: kind + "List", Singular: singular, Plural: singular + "s", Categories: d.Spec.Names.Categories,
	}
	d.Spec.Versions[0].Name = v1alpha1.Version
	schema := d.Spec.Versions[0].Schema.OpenAPIV3Schema
	schema.Description, schema.Required, schema.Properties["spec"] = about, []string{"spec"}, spec
	return d
}

// templateSpec returns the schema of the spec of the template of a kind.
func templateSpec(kind string, spec apiextensionsv1.JSONSchemaProps, base *apiextensionsv1.CustomResourceDefinition) apiextensionsv1.JSONSchemaProps {
	metadata := base.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties["template"].Properties["metadata"]
	metadata.Description = "Metadata holds labels and annotations."
	about := spec.Description
	spec.Description = "Spec is the spec of the " + kind + "."
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: about, Required: []string{"template"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"template": {
			Type: "object", Description: "Template is what a " + kind + "Template holds for each machine.", Required: []string{"spec"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"metadata": metadata, "spec": spec},
		}},
	}
}

// encode writes a definition without what only the API server sets.
func encode(d *apiextensionsv1.CustomResourceDefinition) ([]byte, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	var all map[string]any
	if wrong := document.Unmarshal(data, &all); len(wrong) > 0 { // unlike encoding/json it keeps integers
		return nil, fmt.Errorf("%s: %s", d.Name, wrong[0].Message)
	}
	delete(all, "status")
	var out bytes.Buffer
	out.WriteString("---\n") // files are joined
	err = document.Encode(&out, all)
	return out.Bytes(), err
}

// resource returns a schema of a document as a custom resource has it.
func resource(s *jsonSchema) apiextensionsv1.JSONSchemaProps {
	if s.filled != "" {
		optional := *s
		optional.allowEmpty()
		optional.comment += "\n" + s.filled
		s = &optional
	}
	out := apiextensionsv1.JSONSchemaProps{
		Description: s.comment, Pattern: s.Pattern, MinItems: s.MinItems, MaxItems: s.maxItems, MaxProperties: s.maxProperties, XValidations: s.expressions,
		Minimum: float(s.Minimum), Maximum: float(s.Maximum),
	}
	for _, value := range s.Enum {
		out.Enum = append(out.Enum, apiextensionsv1.JSON{Raw: fmt.Appendf(nil, "%q", value)})
	}
	yes, atomic := true, "atomic"
	switch s.Type {
	case nil: // the fields are mappings; the values of a map may be anything
		out.Type, out.XPreserveUnknownFields = "object", &yes
	case "integer":
		if s.unsigned {
			out.XIntOrString, out.Pattern = true, `^[0-9]{1,20}$`
		} else {
			out.Type, out.Format = "integer", "int64"
		}
	case "array":
		inner := resource(s.Items)
		out.Type, out.XListType, out.Items = "array", &atomic, &apiextensionsv1.JSONSchemaPropsOrArray{Schema: &inner}
	case "object":
		out.Type = "object"
		withProperties(&out, s)
	case "string", "boolean":
		out.Type, _ = s.Type.(string)
	default:
		out.XIntOrString = true
		out.Description += " An integer above 9223372036854775807 is written as a string, because the API server does\nnot keep it exactly."
	}
	return out
}

// withProperties adds the fields of a mapping.
func withProperties(to *apiextensionsv1.JSONSchemaProps, s *jsonSchema) {
	if s.secret {
		to.Required, to.Properties = []string{"valueFrom"}, map[string]apiextensionsv1.JSONSchemaProps{"valueFrom": reference()}
		return
	}
	if values, ok := s.Additional.(*jsonSchema); ok {
		inner := resource(values)
		if values.Type == nil {
			inner.Type = ""
		}
		to.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Schema: &inner}
		return
	}
	to.Properties = map[string]apiextensionsv1.JSONSchemaProps{}
	for name, field := range s.Properties.schemas {
		to.Properties[name] = resource(field)
		if slices.Contains(s.Required, name) && field.filled == "" {
			to.Required = append(to.Required, name)
		}
	}
	slices.Sort(to.Required)
}

// reference returns the schema of what a custom resource has for the value of a secret: a key of a Secret.
func reference() apiextensionsv1.JSONSchemaProps {
	from, to := int64(1), int64(253)
	text := func(about, pattern string) apiextensionsv1.JSONSchemaProps {
		return apiextensionsv1.JSONSchemaProps{Type: "string", Description: about, MinLength: &from, MaxLength: &to, Pattern: pattern}
	}
	return apiextensionsv1.JSONSchemaProps{
		Type: "object", Description: "ValueFrom is where the value is.", Required: []string{"secretKeyRef"},
		Properties: map[string]apiextensionsv1.JSONSchemaProps{"secretKeyRef": {
			Type: "object", Description: "SecretKeyRef names a key of a Secret in the namespace of the object.", Required: []string{"key", "name"},
			Properties: map[string]apiextensionsv1.JSONSchemaProps{
				"name": text("Name is the name of the Secret.", `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`),
				"key":  text("Key is the key in the Secret. Its value is UTF-8 text.", `^[-._a-zA-Z0-9]+$`),
			},
		}},
	}
}

func float(n *int64) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// roleRules refuse the fields of a KubernetesNode that have the tag roles, and the two kinds of etcd, if the object has another role. The
// controller fills in the role of most objects.
func roleRules() []apiextensionsv1.ValidationRule {
	var all []apiextensionsv1.ValidationRule
	tagged := func(of reflect.Type, prefix string) {
		for _, f := range reflect.VisibleFields(of) {
			roles := strings.Split(f.Tag.Get("roles"), ",")
			if roles[0] == "" {
				continue
			}
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			name := prefix + tag
			given := "has(self." + name + ")"
			if f.Type.Kind() == reflect.Slice {
				given = fmt.Sprintf("(%s && size(self.%s) > 0)", given, name)
			}
			field, _, nested := strings.Cut(name, ".")
			if nested {
				given = "has(self." + field + ") && " + given
			}
			last := len(roles) - 1
			listed := roles[last]
			if last > 0 {
				listed = strings.Join(roles[:last], ", ") + " or " + listed
			}
			all = append(all, apiextensionsv1.ValidationRule{
				Rule:    fmt.Sprintf("!((has(self.role) && size(self.role) > 0) && %s) || self.role in ['%s']", given, strings.Join(roles, "', '")),
				Message: name + " is for the role " + listed + " only", FieldPath: "." + field,
			})
		}
	}
	tagged(reflect.TypeFor[v1alpha1.KubernetesNodeSpec](), "")
	tagged(reflect.TypeFor[v1alpha1.Etcd](), "etcd.")
	return all
}
