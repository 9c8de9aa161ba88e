// Package values has what the stages of a run pass on: documents, their errors, the plugins that serve them, plans and results.
// Nothing here calls a plugin or changes anything.
package values

import (
	"encoding/json"
	"fmt"
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

// Doc is a document of the stream.
type Doc struct {
	*document.Document
	// id is the document's ID in reports: its number from 1, and "3.1" for the first document that document 3 expands to.
	ID    string
	Order int    // in the stream's docs, and of its result
	file  string // the stream's name in messages
	Text  []byte
	Wrong Problems // found before its plugin is asked; such a document is not planned
	// secret has the problem of a secret that an image must not get. The document is planned all the same, for its other errors.
	Secret Problems

	Source *Source // of a document that is resolved; nil before, and for others
	From   *Doc    // the reference that brought it; nil in the stream of the run
	Remote bool    // it came from the network
}

// IsReference reports whether the document is resolved instead of applied.
func (d Doc) IsReference() bool { return resolve.IsReference(d.APIVersion, d.Kind) }

// Above returns the labels of the references that the document is within, outermost first.
func (d Doc) Above() []string {
	if d.From == nil {
		return nil
	}
	return append(d.From.Above(), d.From.Label())
}

// Chain returns the labels of those references and of the document.
func (d Doc) Chain() string { return strings.Join(append(d.Above(), d.Label()), " > ") }

// Within returns problems in the stream of a reference as problems of the reference.
func (d Doc) Within(found Problems) Problems {
	var out Problems
	for _, x := range found {
		out = append(out, d.Problem("", x.Err)...)
	}
	return out
}

// Own makes problems in the stream of a reference the problems of the reference, and leaves them where they are.
func (d Doc) Own(found Problems) Problems {
	for i := range found {
		found[i].ID = d.ID
	}
	return found
}

// Label returns KIND/NAME.
func (d Doc) Label() string { return label(d.Kind, d.Name) }

func label(kind, name string) string {
	if kind == "" || name == "" {
		return kind + name
	}
	return kind + "/" + name
}

// ErrorAt adds to an error the document and the position of the field, or of the document if field is empty.
func (d Doc) ErrorAt(field string, e report.Error) report.Error {
	position := d.Position
	if field != "" {
		position = d.Locate(field)
	}
	e.Document, e.Field, e.File, e.Line, e.Column = d.Label(), field, d.file, position.Line, position.Column
	return e
}

// Problem returns an error of a field, or of the document if field is empty.
func (d Doc) Problem(field string, e report.Error) Problems {
	return Problems{{Err: d.ErrorAt(field, e), ID: d.ID}}
}

// Invalid returns an InvalidConfig error of a field.
func (d Doc) Invalid(field, message, hint string) Problems {
	return d.Problem(field, report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: message, Hint: hint})
}

// Stream is a decoded stream: its documents in order, and their errors.
type Stream struct {
	Docs     []Doc
	Problems Problems // found by the decoder, in documents that are not in docs
	Faulty   []Doc    // the ones that a plugin can validate; never applied
}

// Read returns the documents of a decoded stream. Their IDs begin with prefix.
func Read(prefix string, decoded *document.Stream) (Stream, error) {
	var s Stream
	for _, e := range decoded.Errors {
		s.Problems = append(s.Problems, fromDecoder(prefix, e))
	}
	for i, d := range slices.Concat(decoded.Documents, decoded.Faulty) {
		text, err := d.JSON()
		if err != nil {
			return Stream{}, err
		}
		made := Doc{Document: d, ID: prefix + strconv.Itoa(d.Index+1), Order: i, file: decoded.File, Text: text}
		if i < len(decoded.Documents) {
			s.Docs = append(s.Docs, made)
		} else {
			s.Faulty = append(s.Faulty, made)
		}
	}
	return s, nil
}

func fromDecoder(prefix string, e *document.Error) Problem {
	return Problem{ID: prefix + strconv.Itoa(e.Index+1), Err: report.Error{
		Code: pluginv1.CodeInvalidConfig.String(), Message: e.Message, Field: e.Field, File: e.File,
		Line: e.Position.Line, Column: e.Position.Column, Hint: e.Hint, Document: label(e.Kind, e.Name),
	}}
}

// RefusedField reports whether the decoder refused a field or one that contains it.
func (s Stream) RefusedField(d Doc, field string) bool {
	return slices.ContainsFunc(s.Problems, func(x Problem) bool { return x.ID == d.ID && document.Within(field, x.Err.Field) })
}

// WithoutSecrets refuses documents that would write a secret into an image. One that is resolved writes nothing.
func WithoutSecrets(s Stream) Stream {
	for i, d := range s.Docs {
		if field, found := secretIn(d.Text); found && !d.IsReference() {
			s.Docs[i].Secret = d.Invalid(field,
				"a secret would be written into an image, and every machine made from the image would have it",
				"leave the document out of the image, or pass --allow-secrets")
		}
	}
	return s
}

// ours reports whether the contract defines the kind.
func (d Doc) ours() bool {
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

// Undone returns the conflict of a document with another one whose plan undoes what its plan does.
func (d Doc) Undone(what string, other Doc, reason string) Problems {
	there := other.ErrorAt("", report.Error{})
	return d.Problem("", report.Error{
		Code: report.CodeConflict, Message: fmt.Sprintf("%s%s at %s:%d:%d: %s", what, other.Label(), there.File, there.Line, there.Column, reason),
		Hint: "keep the setting in one of the two documents, or make both equal",
	})
}
