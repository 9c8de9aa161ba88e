package explain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/host/reporting"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// jsonSchema is what explain reads of a JSON schema.
type jsonSchema struct {
	Description string          `json:"description"`
	Type        typeNames       `json:"type"`
	Enum        []any           `json:"enum"`
	Pattern     string          `json:"pattern"`
	Minimum     *json.Number    `json:"minimum"`
	Maximum     *json.Number    `json:"maximum"`
	MinItems    json.Number     `json:"minItems"`
	WriteOnly   bool            `json:"writeOnly"`
	Properties  schemaFields    `json:"properties"`
	Additional  json.RawMessage `json:"additionalProperties"`
	Required    []string        `json:"required"`
	Items       *jsonSchema     `json:"items"`
}

// typeNames are the types of a schema, which JSON Schema writes as one string or as a list.
type typeNames []string

func (t *typeNames) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*t = typeNames{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(t))
}

// schemaFields are properties in the order of the schema.
type schemaFields struct {
	names  []string
	fields map[string]*jsonSchema
}

func (f *schemaFields) UnmarshalJSON(data []byte) error {
	if err := json.Unmarshal(data, &f.fields); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	if _, err := d.Token(); err != nil {
		return err
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		f.names = append(f.names, fmt.Sprint(name))
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return err
		}
	}
	return nil
}

func readSchema(kind string, text []byte) (*jsonSchema, error) {
	out := &jsonSchema{}
	if err := json.Unmarshal(text, out); err != nil {
		return nil, &report.Error{Code: pluginv1.CodeInternal.String(), Message: fmt.Sprintf("the JSON schema of %s cannot be read: %s", kind, err)}
	}
	return out, nil
}

// refused is an error of what is asked for.
func refused(message, hint string) error {
	return &report.Error{Code: report.CodeUsage, Message: message, Hint: hint}
}

// element is the schema of the items of a list or of the values of a mapping; nil for anything else.
func (s *jsonSchema) element() *jsonSchema {
	if s.Items != nil {
		return s.Items
	}
	var out jsonSchema
	if len(s.Additional) == 0 || s.Additional[0] != '{' || json.Unmarshal(s.Additional, &out) != nil {
		return nil
	}
	return &out
}

// fields are the properties of the schema, or of what its lists and mappings hold.
func (s *jsonSchema) fields() schemaFields {
	for e := s; e != nil; e = e.element() {
		if len(e.Properties.names) > 0 && !e.secret() {
			return e.Properties
		}
	}
	return schemaFields{}
}

// secret says whether the schema is a secret's: a mapping with the single key value.
func (s *jsonSchema) secret() bool {
	value := s.Properties.fields["value"]
	return len(s.Properties.names) == 1 && value != nil && value.WriteOnly
}

// find follows a path. The fields of the spec may be named without it; an empty path is the spec itself. KEY and [] are the
// elements of a mapping and of a list, as the reference writes them; they may be left out.
func (s *jsonSchema) find(path string) (*jsonSchema, error) {
	here := s
	steps := strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	for n, name := range steps {
		name, _, _ = strings.Cut(name, "[")
		next := here.fields().fields[name]
		if spec := s.Properties.fields["spec"]; n == 0 && next == nil && spec != nil {
			next = spec.fields().fields[name]
		}
		if next == nil && name == "KEY" && here.Items == nil && here.element() != nil {
			next = here.element()
		}
		if next == nil {
			return nil, errors.New("there is no field " + strings.Join(steps[:n+1], "."))
		}
		here = next
	}
	if spec := s.Properties.fields["spec"]; len(steps) == 0 && spec != nil {
		about := *spec
		about.Description = s.Description
		return &about, nil
	}
	return here, nil
}

// typeName names the type in words.
func (s *jsonSchema) typeName() string {
	is := func(name string) bool { return slices.Contains(s.Type, name) }
	switch {
	case s.secret():
		return "secret {value: TEXT}"
	case s.Items != nil:
		return "list of " + s.Items.typeName()
	case is("object") && s.element() != nil:
		return "mapping of names to " + s.element().typeName()
	case is("object"):
		return "mapping"
	case len(s.Type) == 0:
		return "anything"
	}
	return strings.Join(s.Type, " or ")
}

// write shows a field of a kind, or the kind itself if the path is empty.
func (s *jsonSchema) write(out io.Writer, kind, apiVersion, path string, recursive bool) error {
	var b strings.Builder
	fmt.Fprintf(&b, "KIND:        %s\nAPI VERSION: %s\n", kind, words.Escape(apiVersion))
	if path != "" {
		fmt.Fprintf(&b, "FIELD:       %s <%s>\n", words.Escape(path), s.typeName())
	}
	about, fallback := divide(s.Description)
	fmt.Fprintf(&b, "\nDESCRIPTION:\n%s", wrapped(about, "  "))
	for _, rule := range append(s.rules(), fallback...) {
		fmt.Fprintf(&b, "  %s\n", words.Escape(rule))
	}
	if len(s.fields().names) > 0 {
		fmt.Fprintf(&b, "\nFIELDS:\n")
		if recursive {
			s.tree(&b, "  ")
		} else {
			s.list(&b)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// divide takes the sentences with the default out of a description.
func divide(description string) (about string, fallback []string) {
	var rest []string
	for sentence := range strings.SplitAfterSeq(description, ". ") {
		if strings.HasPrefix(sentence, "Default ") || strings.HasPrefix(sentence, "By default ") {
			fallback = append(fallback, strings.TrimSpace(sentence))
		} else {
			rest = append(rest, sentence)
		}
	}
	return strings.Join(rest, ""), fallback
}

// rules returns what a value of the field, or each item of its list, must be, a sentence each.
func (s *jsonSchema) rules() []string {
	var all []string
	if s.MinItems != "" {
		all = append(all, fmt.Sprintf("Number of items: at least %s.", s.MinItems))
	}
	if s.Items != nil {
		return append(all, s.Items.rules()...)
	}
	var values []string
	for _, v := range s.Enum {
		if v != "" { // as if the field were absent
			values = append(values, fmt.Sprint(v))
		}
	}
	if len(values) > 0 {
		all = append(all, "One of "+strings.Join(values, ", ")+".")
	}
	switch {
	case s.Minimum != nil && s.Maximum != nil:
		all = append(all, fmt.Sprintf("From %s to %s.", *s.Minimum, *s.Maximum))
	case s.Minimum != nil:
		all = append(all, fmt.Sprintf("At least %s.", *s.Minimum))
	case s.Maximum != nil:
		all = append(all, fmt.Sprintf("At most %s.", *s.Maximum))
	}
	if s.Pattern != "" {
		all = append(all, "Matches "+s.Pattern)
	}
	return all
}

// list writes each field with its type and its description.
func (s *jsonSchema) list(b *strings.Builder) {
	all := s.fields()
	for i, name := range all.names {
		field, required := all.fields[name], ""
		if slices.Contains(s.requiredFields(), name) {
			required = " -required-"
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(b, "  %s <%s>%s\n%s", words.Escape(name), field.typeName(), required, wrapped(field.Description, "    "))
	}
}

func (s *jsonSchema) requiredFields() []string {
	for e := s; e != nil; e = e.element() {
		if len(e.Properties.names) > 0 {
			return e.Required
		}
	}
	return nil
}

// tree writes the fields and theirs, by name and type.
func (s *jsonSchema) tree(b *strings.Builder, indent string) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	s.rows(w, indent)
	_ = w.Flush() // into memory
}

func (s *jsonSchema) rows(w io.Writer, indent string) {
	all := s.fields()
	for _, name := range all.names {
		_, _ = fmt.Fprintf(w, "%s%s\t<%s>\n", indent, words.Escape(name), all.fields[name].typeName()) // into memory
		all.fields[name].rows(w, indent+"  ")
	}
}

// wrapped returns a text in lines of at most 100 characters.
func wrapped(text, indent string) string {
	words := strings.Fields(words.Escape(text))
	if len(words) == 0 {
		return ""
	}
	return reporting.Wrap(indent+strings.Join(words, " ")+"\n", 100, 0)
}
