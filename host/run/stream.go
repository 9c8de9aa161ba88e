package run

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/resolve"
)

// doc is a document of the stream.
type doc struct {
	*document.Document
	// id is the document's ID in reports: its number from 1, and "3.1" for the first document that document 3 expands to.
	id    string
	index int    // in the stream's docs, and of its result
	file  string // the stream's name in messages
	json  []byte
	wrong problems // found before its plugin is asked; such a document is not planned
	// secret has the problem of a secret that an image must not get. The document is planned all the same, for its other errors.
	secret problems

	source *source // of a document that is resolved; nil before, and for others
	from   *doc    // the reference that brought it; nil in the stream of the run
	remote bool    // it came from the network
}

// isReference reports whether the document is resolved instead of applied.
func (d doc) isReference() bool { return resolve.IsReference(d.APIVersion, d.Kind) }

// above returns the labels of the references that the document is within, outermost first.
func (d doc) above() []string {
	if d.from == nil {
		return nil
	}
	return append(d.from.above(), d.from.label())
}

// chain returns the labels of those references and of the document.
func (d doc) chain() string { return strings.Join(append(d.above(), d.label()), " > ") }

// within returns problems in the stream of a reference as problems of the reference.
func (d doc) within(found problems) problems {
	var out problems
	for _, x := range found {
		out = append(out, d.problem("", x.err)...)
	}
	return out
}

// own makes problems in the stream of a reference the problems of the reference, and leaves them where they are.
func (d doc) own(found problems) problems {
	for i := range found {
		found[i].id = d.id
	}
	return found
}

// label returns KIND/NAME.
func (d doc) label() string { return label(d.Kind, d.Name) }

func label(kind, name string) string {
	if kind == "" || name == "" {
		return kind + name
	}
	return kind + "/" + name
}

// locate adds to an error the document and the position of the field, or of the document if field is empty.
func (d doc) locate(field string, e report.Error) report.Error {
	position := d.Position
	if field != "" {
		position = d.Locate(field)
	}
	e.Document, e.Field, e.File, e.Line, e.Column = d.label(), field, d.file, position.Line, position.Column
	return e
}

// problem returns an error of a field, or of the document if field is empty.
func (d doc) problem(field string, e report.Error) problems {
	return problems{{err: d.locate(field, e), id: d.id}}
}

// invalid returns an InvalidConfig error of a field.
func (d doc) invalid(field, message, hint string) problems {
	return d.problem(field, report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: message, Hint: hint})
}

// stream is a decoded stream: its documents in order, and their errors.
type stream struct {
	docs     []doc
	problems problems // found by the decoder, in documents that are not in docs
	faulty   []doc    // the ones that a plugin can validate; never applied
}

// read returns the documents of a decoded stream. Their IDs begin with prefix.
func read(prefix string, decoded *document.Stream) (stream, error) {
	var s stream
	for _, e := range decoded.Errors {
		s.problems = append(s.problems, fromDecoder(prefix, e))
	}
	for i, d := range slices.Concat(decoded.Documents, decoded.Faulty) {
		text, err := d.JSON()
		if err != nil {
			return stream{}, err
		}
		made := doc{Document: d, id: prefix + strconv.Itoa(d.Index+1), index: i, file: decoded.File, json: text}
		if i < len(decoded.Documents) {
			s.docs = append(s.docs, made)
		} else {
			s.faulty = append(s.faulty, made)
		}
	}
	return s, nil
}

func fromDecoder(prefix string, e *document.Error) problem {
	return problem{id: prefix + strconv.Itoa(e.Index+1), err: report.Error{
		Code: pluginv1.CodeInvalidConfig.String(), Message: e.Message, Field: e.Field, File: e.File,
		Line: e.Position.Line, Column: e.Position.Column, Hint: e.Hint, Document: label(e.Kind, e.Name),
	}}
}

// refusedField reports whether the decoder refused a field or one that contains it.
func (s stream) refusedField(d doc, field string) bool {
	return slices.ContainsFunc(s.problems, func(x problem) bool { return x.id == d.id && document.Within(field, x.err.Field) })
}

// withoutSecrets refuses documents that would write a secret into an image. One that is resolved writes nothing.
func withoutSecrets(s stream) stream {
	for i, d := range s.docs {
		if field, found := secretIn(d.json); found && !d.isReference() {
			s.docs[i].secret = d.invalid(field,
				"a secret would be written into an image, and every machine made from the image would have it",
				"leave the document out of the image, or pass --allow-secrets")
		}
	}
	return s
}

// ours reports whether the contract defines the kind.
func (d doc) ours() bool {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	return group == v1alpha1.Group && slices.Contains(v1alpha1.Kinds(), d.Kind)
}

// HoldsSecret reports whether any document of a stream has a field in the form of a secret.
func HoldsSecret(s *document.Stream) bool {
	return slices.ContainsFunc(s.Documents, func(d *document.Document) bool {
		text, err := d.JSON()
		_, found := secretIn(text)
		return err == nil && found
	})
}

// secretIn returns the first field in the form of a secret: a mapping whose only key is value, with a string. The contract
// gives this form to every secret and to nothing else, in kinds of third parties too.
func secretIn(text []byte) (field string, found bool) {
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return "", false
	}
	return findSecret(document.Path("spec"), root["spec"])
}

func findSecret(path document.Path, node any) (string, bool) {
	switch node := node.(type) {
	case map[string]any:
		if text, ok := node["value"].(string); ok && len(node) == 1 && text != "" {
			return string(path), true
		}
		for _, key := range slices.Sorted(maps.Keys(node)) {
			if field, found := findSecret(path.Field(key), node[key]); found {
				return field, true
			}
		}
	case []any:
		for i, element := range node {
			if field, found := findSecret(path.Index(i), element); found {
				return field, true
			}
		}
	}
	return "", false
}
