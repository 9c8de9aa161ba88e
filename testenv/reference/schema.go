package reference

import (
	"bytes"
	"encoding/json"
	"go/ast"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// SchemaDirectory is where the JSON schemas are in a checkout, one file for each kind.
const SchemaDirectory = "contract/v1alpha1/schema"

// jsonSchema is the subset of JSON Schema that is written. Source: https://json-schema.org/draft/2020-12.
type jsonSchema struct {
	Schema      string      `json:"$schema,omitempty"`
	Title       string      `json:"title,omitempty"`
	Description string      `json:"description,omitempty"`
	Type        any         `json:"type,omitempty"` // one name or several
	Const       string      `json:"const,omitempty"`
	Enum        []string    `json:"enum,omitempty"`
	Pattern     string      `json:"pattern,omitempty"`
	Minimum     *int64      `json:"minimum,omitempty"`
	Maximum     *int64      `json:"maximum,omitempty"`
	MinItems    *int64      `json:"minItems,omitempty"`
	WriteOnly   bool        `json:"writeOnly,omitempty"` // of a secret
	Properties  *properties `json:"properties,omitempty"`
	Additional  any         `json:"additionalProperties,omitempty"` // a schema, or false
	Required    []string    `json:"required,omitempty"`
	Items       *jsonSchema `json:"items,omitempty"`
	Not         *jsonSchema `json:"not,omitempty"`
	resourceOnly
}

// properties keep the order of the source, which explain and editors show.
type properties struct {
	names   []string
	schemas map[string]*jsonSchema
}

// add adds a property, or replaces it.
func (p *properties) add(name string, schema *jsonSchema) {
	if p.schemas[name] == nil {
		p.names = append(slices.Clip(p.names), name)
	}
	p.schemas[name] = schema
}

// MarshalJSON writes the properties in order.
func (p properties) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, name := range p.names {
		b.WriteString(map[bool]string{true: "{", false: ","}[i == 0])
		for _, part := range []any{name, p.schemas[name]} {
			text, err := json.Marshal(part)
			if err != nil {
				return nil, err
			}
			b.Write(text)
			if part == any(name) {
				b.WriteByte(':')
			}
		}
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// Schemas returns the JSON schemas of the kinds that have a struct, of the configurations of Kubernetes and of a document of any kind, by the
// name of the file. root is a checkout.
func (s *Source) Schemas(root string) (map[string][]byte, error) {
	out := map[string][]byte{}
	all, err := configurations(root)
	for _, c := range all {
		text, err := json.MarshalIndent(c.file(), "", "  ")
		if err != nil {
			return nil, err
		}
		out[c.kind+".json"] = append(text, '\n')
	}
	if err != nil {
		return nil, err
	}
	written, _ := s.Kinds(kindsPackage)
	for _, kind := range written {
		root := s.object(kindsPackage+"."+kind, nil)
		if s.err != nil {
			return nil, s.err
		}
		root.Schema = draft
		root.Title, root.Description = kind, paragraph(s.docs[kindsPackage+"."+kind])
		root.Properties.schemas["apiVersion"].Const = v1alpha1.APIVersion
		root.Properties.schemas["kind"].Const = kind
		text, err := json.MarshalIndent(root, "", "  ")
		if err != nil {
			return nil, err
		}
		out[kind+".json"] = append(text, '\n')
	}
	text, err := json.MarshalIndent(anyDocument(written, all), "", "  ")
	out[AnyDocument] = append(text, '\n')
	return out, err
}

// AnyDocument is the file name of the schema of a document of any kind, for editors. The language server applies the schema that
// a comment names to the document with this comment only.
const AnyDocument = "document.json"

func anyDocument(kinds []string, configurations []configuration) any {
	type object = map[string]any
	ours := object{"properties": object{"apiVersion": object{"const": v1alpha1.APIVersion}, "kind": object{"enum": kinds}}}
	near := object{"apiVersion": object{"pattern": `\.x-k8s\.io/`}, "kind": object{"enum": kinds}} // the groups of Kubernetes itself
	rules := []any{
		object{"if": object{"properties": object{"apiVersion": object{"pattern": "^" + regexp.QuoteMeta(v1alpha1.Group) + "/"}}}, "then": ours},
		object{"if": object{"properties": near}, "then": ours},
	}
	for _, kind := range kinds {
		rules = append(rules, object{
			"if":   object{"properties": object{"apiVersion": object{"const": v1alpha1.APIVersion}, "kind": object{"const": kind}}},
			"then": object{"$ref": kind + ".json"},
		})
	}
	for _, c := range configurations {
		rules = append(rules, c.documentRules()...)
	}
	return object{
		"$schema": draft, "title": "a document of machineadm", "type": "object",
		"required": []string{"apiVersion", "kind", "metadata", "spec"}, "allOf": rules,
		"properties": object{"kind": object{"type": "string", "pattern": "^[A-Z][A-Za-z0-9]{0,62}$"}},
	}
}

// object is the schema of a struct. inside are the structs around it: one that contains itself is not repeated.
func (s *Source) object(name string, inside []string) *jsonSchema {
	out := &jsonSchema{Type: "object", Additional: false, Properties: &properties{schemas: map[string]*jsonSchema{}}}
	out.comment = s.docs[name]
	s.addFields(out, name, append(slices.Clip(inside), name))
	return out
}

func (s *Source) addFields(to *jsonSchema, name string, inside []string) {
	pkg, short, _ := strings.Cut(name, ".")
	s.mark(to, s.markers[name])
	for _, f := range s.structs[name].Fields.List {
		tag, omitted, inline := jsonTag(f)
		if inline {
			s.addFields(to, qualified(pkg, f.Type), inside)
			continue
		}
		if tag == "" {
			continue
		}
		field := s.of(pkg, f.Type, inside)
		field.comment, field.filled = text(f.Doc, f.Comment), filled()[short+"."+tag]
		field.Description = paragraph(field.comment)
		if len(f.Names) > 0 {
			field.Description = paragraph(unnamed(f.Names[0].Name, field.comment))
		}
		s.mark(field, markers(f.Doc, f.Comment))
		if omitted {
			field.allowEmpty()
		}
		to.Properties.add(tag, field)
		if !omitted {
			to.Required = append(to.Required, tag)
		}
	}
}

// of is the schema of a type.
func (s *Source) of(pkg string, t ast.Expr, inside []string) *jsonSchema {
	switch t := t.(type) {
	case *ast.StarExpr:
		return s.of(pkg, t.X, inside)
	case *ast.ArrayType:
		return &jsonSchema{Type: "array", Items: s.of(pkg, t.Elt, inside)}
	case *ast.MapType:
		return &jsonSchema{Type: "object", Additional: s.of(pkg, t.Value, inside)}
	case *ast.Ident:
		if word := plain(t.Name, false); word != "" && word != "anything" {
			return &jsonSchema{Type: word, resourceOnly: resourceOnly{unsigned: t.Name == "uint64"}}
		}
	}
	name := qualified(pkg, t)
	switch {
	case s.aliases[name] != nil:
		out := s.of(pkg, s.aliases[name], inside)
		s.mark(out, s.markers[name])
		return out
	case strings.HasSuffix(name, ".Secret"):
		value := &jsonSchema{Type: "string", WriteOnly: true}
		return &jsonSchema{
			Type: "object", Properties: &properties{names: []string{"value"}, schemas: map[string]*jsonSchema{"value": value}},
			Additional: false, Required: []string{"value"}, resourceOnly: resourceOnly{secret: true, comment: secretComment},
		}
	case strings.HasSuffix(name, ".IntOrString"):
		return &jsonSchema{Type: []string{"integer", "string"}, resourceOnly: resourceOnly{comment: s.docs[name]}}
	case slices.Contains(inside, name):
		return &jsonSchema{Type: "object"}
	case s.structs[name] != nil:
		return s.object(name, inside)
	case s.values[name] != nil:
		out := &jsonSchema{Type: "string"}
		for _, c := range s.enums[name] {
			out.Enum = append(out.Enum, c.value)
		}
		return out
	}
	return &jsonSchema{} // free-form
}

// paragraph is a comment on one line.
func paragraph(text string) string { return strings.Join(strings.Fields(text), " ") }

// SchemaFile is where the schema of a file name of Schemas is, below root.
func SchemaFile(root, name string) string {
	return filepath.Join(root, path.Join(SchemaDirectory, name))
}
