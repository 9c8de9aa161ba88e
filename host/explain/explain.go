// Package explain shows what the fields of a kind of document mean, from its JSON schema, and examples of the kinds of this release.
package explain

import (
	"fmt"
	"io"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/contract/v1alpha1/schema"
)

// The values of Query.Example.
const (
	Minimal = "minimal"
	Full    = "full"
)

// Query is what is asked for.
type Query struct {
	// Path is KIND or KIND.FIELD, such as ContainerRuntime.registries.mirrors.
	Path string
	// Recursive shows the fields of fields, by name and type alone.
	Recursive bool
	// Example asks for a document of the kind instead: Minimal or Full. Empty for none.
	Example string
}

// Write writes the answer. other returns the schema of a kind that is not of this release. Errors are *report.Error, or come from other.
func Write(out io.Writer, q Query, other func(kind string) (apiVersion string, schema []byte, err error)) error {
	kind, path, _ := strings.Cut(q.Path, ".")
	if err := naming.ValidKind(kind); err != nil {
		hint := "write a kind such as Sysctl, and a field behind a dot"
		if near := document.SuggestKind(kind); near != "" {
			hint = "did you mean " + near + "?"
		}
		return refused(fmt.Sprintf("%q is not the name of a kind: %s", kind, err), hint)
	}
	switch {
	case q.Example == "":
		return fields(out, kind, path, q.Recursive, other)
	case q.Example != Minimal && q.Example != Full:
		return refused("--example is "+Minimal+" or "+Full, "")
	case path != "" || q.Recursive:
		return refused("--example prints a whole document: run machineadm explain "+kind+" --example="+q.Example, "")
	}
	text, err := example(kind, q.Example == Full)
	if err != nil {
		return err
	}
	_, err = io.WriteString(out, text)
	return err
}

func fields(out io.Writer, kind, path string, recursive bool, other func(kind string) (string, []byte, error)) error {
	apiVersion, text := v1alpha1.APIVersion, schema.For(v1alpha1.APIVersion, kind)
	if text == nil {
		var err error
		if apiVersion, text, err = other(kind); err != nil {
			return err
		}
	}
	root, err := readSchema(kind, text)
	if err != nil {
		return err
	}
	field, err := root.find(path)
	if err != nil {
		return refused(kind+": "+err.Error(), "machineadm explain "+kind+" --recursive lists the fields")
	}
	return field.write(out, kind, apiVersion, path, recursive)
}

// Complete returns the paths that begin with what is written: kinds of this release, and fields behind the last dot.
func Complete(begun string) []string {
	dot := strings.LastIndex(begun, ".")
	if dot < 0 {
		return v1alpha1.Kinds()
	}
	kind, path, _ := strings.Cut(begun[:dot], ".")
	root, err := readSchema(kind, schema.For(v1alpha1.APIVersion, kind))
	if err != nil {
		return nil
	}
	here, err := root.find(path)
	if err != nil {
		return nil
	}
	var out []string
	for _, name := range here.fields().names {
		if field := begun[:dot+1] + name; strings.HasPrefix(field, begun) {
			out = append(out, field)
		}
	}
	return out
}
