package run

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// inspect finds what the host itself refuses in a document that is well-formed.
func (r *run) inspect(d *document.Document) []*document.Error {
	at := func(field, message, hint string) []*document.Error {
		return []*document.Error{{
			File: r.o.File, Index: d.Index, Kind: d.Kind, Name: d.Name,
			Field: field, Position: d.Locate(field), Message: message, Hint: hint,
		}}
	}
	if d.APIVersion == v1alpha1.APIVersion && (d.Kind == v1alpha1.KindRemoteConfig || d.Kind == v1alpha1.KindEncryptedConfig) {
		return at("kind", "this release does not resolve "+d.Kind+" documents yet",
			"put the documents themselves into the stream")
	}
	if r.o.Mode != ModeValidate && r.o.Root != "" && !r.o.AllowSecrets {
		data, err := d.JSON()
		if err != nil {
			return at("", "the document cannot be encoded as JSON", "")
		}
		if field, found := secretIn(data); found {
			return at(field, "a secret would be written into an image, where every machine made of it has it",
				"leave the document out of the image, or pass --allow-secrets")
		}
	}
	return nil
}

// ours says whether the host knows every version of this kind.
func ours(d *document.Document) bool {
	group, _, _ := strings.Cut(d.APIVersion, "/")
	if group != v1alpha1.Group {
		return false
	}
	for _, kind := range v1alpha1.Kinds() {
		if kind == d.Kind {
			return true
		}
	}
	return false
}

// HoldsSecret says whether any document of a stream holds a secret, as far as its form tells.
func HoldsSecret(documents []*document.Document) bool {
	for _, d := range documents {
		data, err := d.JSON()
		if err != nil {
			continue
		}
		if _, found := secretIn(data); found {
			return true
		}
	}
	return false
}

// secretIn finds the first field that has a secret's form: a mapping whose only key is value, with a string. The
// contract gives every secret this form and nothing else in a document has it, also in kinds that the host does not
// know.
func secretIn(doc []byte) (field string, found bool) {
	var root map[string]any
	if err := json.Unmarshal(doc, &root); err != nil {
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
		for _, key := range sortedKeys(node) {
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

// StreamHoldsSecret is HoldsSecret for a stream that is not decoded yet.
func StreamHoldsSecret(file string, stream []byte) bool {
	decoded, err := document.Decode(file, bytes.NewReader(stream))
	return err == nil && HoldsSecret(decoded.Documents)
}
