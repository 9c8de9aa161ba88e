package pluginv1

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Bounds of what a plugin sends, checked by the receiver. A longer text is cut and ends with the number of missing bytes; of
// warnings, violations and facts the first are kept and the others counted. Anything else above its bound violates the
// protocol, because a part of it would have another meaning.
const (
	MaxDiffBytes   = 256 << 10 // Change.diff
	MaxDetailBytes = 64 << 10  // ErrorDetail.detail
	MaxTextBytes   = 4 << 10   // every other text; an id must not be longer
	MaxSchemaBytes = 1 << 20   // Kind.json_schema
	MaxChanges     = 10_000    // of a plan
	MaxClaims      = 20_000    // of a plan
	MaxFiles       = 20_000    // of a plan
	MaxWarnings    = 100       // of a plan, and of an Apply
	MaxViolations  = 1_000     // of an error
	MaxFacts       = 64        // of an error
	MaxNames       = 1_000     // of every list of names in a description, and of needs of a plan
)

// bound cuts every text of a received message and of the messages in it, except ids: the checks refuse one that is too long.
func bound(m proto.Message) { boundMessage(m.ProtoReflect()) }

func boundMessage(m protoreflect.Message) {
	m.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		switch {
		case field.IsMap():
			boundMap(field, value.Map())
		case field.IsList():
			boundList(field, value.List())
		case field.Kind() == protoreflect.MessageKind:
			boundMessage(value.Message())
		case field.Kind() == protoreflect.StringKind && len(value.String()) > longest(field):
			m.Set(field, protoreflect.ValueOfString(cut(value.String(), longest(field))))
		}
		return true
	})
}

func boundList(field protoreflect.FieldDescriptor, list protoreflect.List) {
	for i := range list.Len() {
		switch field.Kind() {
		case protoreflect.MessageKind:
			boundMessage(list.Get(i).Message())
		case protoreflect.StringKind:
			list.Set(i, protoreflect.ValueOfString(cut(list.Get(i).String(), longest(field))))
		}
	}
}

// boundMap cuts the values of a map of texts and removes keys that are too long.
func boundMap(field protoreflect.FieldDescriptor, texts protoreflect.Map) {
	if field.MapKey().Kind() != protoreflect.StringKind || field.MapValue().Kind() != protoreflect.StringKind {
		return
	}
	texts.Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
		if len(key.String()) > MaxTextBytes {
			texts.Clear(key)
			return true
		}
		texts.Set(key, protoreflect.ValueOfString(cut(value.String(), MaxTextBytes)))
		return true
	})
}

// longest returns the bound of a text field in bytes.
func longest(field protoreflect.FieldDescriptor) int {
	switch {
	case field.Name() == "id":
		return MaxMessageBytes
	case field.FullName() == diffField:
		return MaxDiffBytes
	case field.FullName() == detailField:
		return MaxDetailBytes
	}
	return MaxTextBytes
}

// The fields with bounds of their own.
const (
	diffField   = "machineadm.plugin.v1.Change.diff"
	detailField = "machineadm.plugin.v1.ErrorDetail.detail"
)

// cut shortens a text to at most this many bytes, with a note at its end.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	note := func(kept int) string { return fmt.Sprintf(" [%d bytes cut]", len(text)-kept) }
	kept := most - len(note(0))
	for kept > 0 && !utf8.RuneStart(text[kept]) {
		kept--
	}
	return strings.Clone(text[:kept]) + note(kept) // a substring would keep the whole text in memory
}
