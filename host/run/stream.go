package run

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// doc is a document of the stream.
type doc struct {
	*document.Document
	// id names the document in reports: its number from 1, and "3.1" for the first of those that document 3 expands to.
	id   string
	file string // the stream's name in messages
	json []byte
}

// stream is what the stages hand on: the documents in order, and what is wrong with single ones.
type stream struct {
	docs     []doc
	refused  map[int]problems // by place in docs
	problems problems         // of documents with faults
	faulty   []doc            // those of them that a plugin can check; never applied
}

// read decodes a stream. An error is one of the stream as a whole.
func read(file string, data []byte) (stream, error) {
	decoded, err := document.Decode(file, bytes.NewReader(data))
	if err != nil {
		return stream{}, one(report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: err.Error(), File: file})
	}
	s := stream{refused: map[int]problems{}}
	for _, e := range decoded.Errors {
		s.problems = append(s.problems, fromDecoder(e))
	}
	for i, d := range slices.Concat(decoded.Documents, decoded.Faulty) {
		text, err := d.JSON()
		if err != nil {
			return stream{}, one(report.Error{Code: pluginv1.CodeInvalidConfig.String(), Message: err.Error(), File: file})
		}
		made := doc{Document: d, id: strconv.Itoa(d.Index + 1), file: file, json: text}
		if i < len(decoded.Documents) {
			s.docs = append(s.docs, made)
		} else {
			s.faulty = append(s.faulty, made)
		}
	}
	return s, nil
}

// refusedField says whether the decoder refused a field of a document, or one that the field lies in.
func (s stream) refusedField(d doc, field string) bool {
	return slices.ContainsFunc(s.problems, func(x problem) bool { return x.id == d.id && document.Within(field, x.err.Field) })
}

// expand puts in place of a document those that it stands for. This release has no such kind, and refuses the two that
// are reserved.
func expand(s stream) stream {
	for i, d := range s.docs {
		if d.APIVersion == v1alpha1.APIVersion && (d.Kind == v1alpha1.KindRemoteConfig || d.Kind == v1alpha1.KindEncryptedConfig) {
			s.refused[i] = append(s.refused[i], problem{err: d.at("kind", report.Error{
				Code: pluginv1.CodeInvalidConfig.String(), Message: "this release does not resolve " + d.Kind + " documents",
				Hint: "put the documents themselves into the stream",
			})})
		}
	}
	return s
}

// withoutSecrets refuses documents that would put a secret into an image.
func withoutSecrets(s stream) stream {
	for i, d := range s.docs {
		if field, found := secretIn(d.json); found {
			s.refused[i] = append(s.refused[i], problem{err: d.at(field, report.Error{
				Code: pluginv1.CodeInvalidConfig.String(), Message: "a secret would be written into an image, where every machine made of it has it",
				Hint: "leave the document out of the image, or pass --allow-secrets",
			})})
		}
	}
	return s
}

// ours says whether the host knows every version of this kind.
func ours(d doc) bool {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	return group == v1alpha1.Group && slices.Contains(v1alpha1.Kinds(), d.Kind)
}

// StreamHoldsSecret says whether any document of a stream that is not decoded yet holds a secret, as far as its form
// shows it.
func StreamHoldsSecret(file string, data []byte) bool {
	s, err := read(file, data)
	return err == nil && slices.ContainsFunc(s.docs, func(d doc) bool {
		_, found := secretIn(d.json)
		return found
	})
}

// secretIn finds the first field that has a secret's form: a mapping whose only key is value, with a string. The
// contract gives every secret this form and nothing else in a document has it, also in kinds that the host does not
// know.
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
