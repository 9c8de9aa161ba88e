package settings

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/lazyregexp"
)

//go:embed fields.txt
var fieldTable string

// schema is a field of a configuration of Kubernetes.
type schema struct {
	what   string             // the type of a value, empty for what has more in it
	since  int                // the first minor version of Kubernetes that has it
	inside map[string]*schema // by name; {} for any key of a mapping, [] for an item of a list
}

var schemaSteps = lazyregexp.New(`[^.{}[\]]+|{}|\[\]`)

// schemaOf returns the fields of a kind of configuration.
func schemaOf(kind string) *schema {
	root := &schema{inside: map[string]*schema{}}
	for line := range strings.Lines(fieldTable) {
		f := strings.Fields(line)
		if f[0] != kind {
			continue
		}
		since, _ := strconv.Atoi(f[3]) // digits
		at := root
		for _, step := range schemaSteps().FindAllString(f[1], -1) {
			if at.inside[step] == nil {
				at.inside[step] = &schema{since: since, inside: map[string]*schema{}}
			}
			at = at.inside[step]
			at.since = min(at.since, since)
		}
		at.what = f[2]
	}
	return root
}

// inspection finds what Kubernetes refuses or silently drops of a configuration, or of a part of it.
type inspection struct {
	kind  string
	minor int // of Kubernetes
	// found gets what is wrong with the value at a path.
	found func(at document.Path, message, hint string)
	// check says what is wrong with a value of the right type at a path of the table, or with a key at {key}, "" for nothing.
	check func(path string, value any) (message, hint string)
	// gate gets each feature gate of the document.
	gate func(at document.Path, name string, value bool)
}

// visit inspects a value. path is the path of its field in the table, and at is its path in the document.
func (i inspection) visit(s *schema, path string, at document.Path, value any) {
	if value == nil {
		return // as if it were absent
	}
	if items := s.inside["[]"]; items != nil {
		list, ok := value.([]any)
		if !ok {
			i.found(at, "must be a list", "write each item behind - on a line of its own")
		}
		for n, item := range list {
			i.visit(items, path+"[]", at.Index(n), item)
		}
		return
	}
	if s.what != "" {
		message, hint := mistyped(s.what, value)
		if message == "" {
			message, hint = i.check(path, value)
		}
		if message != "" {
			i.found(at, message, hint)
		}
		return
	}
	object, ok := value.(map[string]any)
	if !ok {
		i.found(at, "must be a mapping", "write its fields below it, indented")
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch next := s.inside[name]; {
		case s.inside["{}"] != nil:
			if message, hint := i.check(path+"{key}", name); message != "" {
				i.found(at.Key(name), message, hint)
			}
			i.visit(s.inside["{}"], path+"{}", at.Key(name), object[name])
			if value, ok := object[name].(bool); ok && path == "featureGates" {
				i.gate(at.Key(name), name, value)
			}
		case strings.HasPrefix(name, "$"), path == "" && (name == "apiVersion" || name == "kind"): // of a strategic patch
		case next == nil:
			i.found(at.Field(name), "is not a field of "+i.kind, s.instead(name))
		case next.since > i.minor:
			i.found(at.Field(name), fmt.Sprintf("is a field from Kubernetes 1.%d on, and older ones ignore it", next.since), "remove it, or use a newer version")
		default:
			i.visit(next, strings.TrimPrefix(path+"."+name, "."), at.Field(name), object[name])
		}
	}
}

// instead is the hint for a name that the mapping does not have.
func (s *schema) instead(name string) string {
	if near := document.Nearest(name, slices.Collect(maps.Keys(s.inside))); near != "" {
		return "did you mean " + near + "?"
	}
	return "remove it, or correct its spelling and its indentation"
}

// descend returns the field at a JSON pointer, nil if there is none, with its path in the table.
func (s *schema) descend(pointer string) (*schema, string) {
	path := ""
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch {
		case s.inside["{}"] != nil:
			s, path = s.inside["{}"], path+"{}"
		case s.inside["[]"] != nil:
			s, path = s.inside["[]"], path+"[]"
		case s.inside[step] != nil:
			s, path = s.inside[step], strings.TrimPrefix(path+"."+step, ".")
		case s.what == "any":
			return s, path
		default:
			return nil, ""
		}
	}
	return s, path
}

// mistyped says what is wrong with a value of a type of the table, "" for nothing. Kubernetes decodes neither a text as a number nor the
// reverse.
func mistyped(what string, value any) (message, hint string) {
	text, isText := value.(string)
	number, isNumber := value.(json.Number)
	switch what {
	case "bool":
		if _, ok := value.(bool); !ok {
			return "must be true or false", "write it without quotes"
		}
	case "string":
		if !isText {
			return "must be a text", "put it in quotes"
		}
	case "int32", "int64", "uint32":
		_, err := strconv.ParseInt(string(number), 10, map[string]int{"int32": 32, "int64": 64, "uint32": 33}[what])
		if !isNumber || err != nil || what == "uint32" && strings.HasPrefix(string(number), "-") {
			return "must be a whole number", "write it in digits without quotes"
		}
	case "float32", "float64":
		if !isNumber {
			return "must be a number", "write it in digits without quotes"
		}
	case "duration":
		if _, err := time.ParseDuration(text); !isText || err != nil {
			return "must be a Go duration", "write it like 90s or 4m, in quotes"
		}
	case "quantity":
		if !isNumber && !quantity().MatchString(text) {
			return "is not a quantity", "write it like 500Mi"
		}
	}
	return "", ""
}
