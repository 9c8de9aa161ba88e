package reference

import (
	"errors"
	"fmt"
	"go/ast"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

const (
	markerPrefix = "+kubebuilder:"
	validation   = "validation:"
)

// markers returns the markers of comments, without their prefix.
func markers(groups ...*ast.CommentGroup) []string {
	var all []string
	for _, g := range groups {
		for line := range strings.Lines(g.Text()) {
			if marker, ok := strings.CutPrefix(strings.TrimSpace(line), markerPrefix); ok {
				all = append(all, marker)
			}
		}
	}
	return all
}

// mark adds rules to a schema. Source.err has those that are not understood.
func (s *Source) mark(to *jsonSchema, markers []string) {
	for _, m := range markers {
		if err := to.mark(m); err != nil {
			s.err = errors.Join(s.err, fmt.Errorf("the marker %s%s: %w", markerPrefix, m, err))
		}
	}
}

func (s *jsonSchema) mark(marker string) (err error) {
	rule, ok := strings.CutPrefix(marker, validation)
	if !ok {
		return errors.New("is not one of validation")
	}
	if expression, ok := strings.CutPrefix(rule, "XValidation:"); ok {
		return s.express(expression)
	}
	if inner, ok := strings.CutPrefix(rule, "items:"); ok {
		if s.Items == nil {
			return errors.New("is for a list")
		}
		return s.Items.mark(validation + inner)
	}
	name, value, _ := strings.Cut(rule, "=")
	switch name {
	case "Enum":
		for one := range strings.SplitSeq(value, ";") {
			if unquoted, err := strconv.Unquote(one); err == nil {
				one = unquoted
			}
			s.Enum = append(s.Enum, one)
		}
	case "Pattern":
		pattern := strings.Trim(value, "`")
		if pattern, ok = strings.CutPrefix(pattern, "^"); ok {
			pattern, ok = strings.CutSuffix(pattern, "$")
		}
		if !ok {
			return errors.New("is not a pattern of the whole text, `^...$`")
		}
		s.Pattern = "^(?:" + pattern + ")$"
	case "Minimum":
		s.Minimum, err = number(value)
	case "Maximum":
		s.Maximum, err = number(value)
	case "MinItems":
		s.MinItems, err = number(value)
	case "MaxItems":
		s.maxItems, err = number(value)
	case "MaxProperties":
		s.maxProperties, err = number(value)
	default:
		return errors.New("is unknown to testenv/reference")
	}
	return err
}

func number(text string) (*int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	return &n, err //nolint:wrapcheck // mark names the marker
}

// express adds a rule in CEL: rule="...",message="...",fieldPath="...".
func (s *jsonSchema) express(text string) error {
	var rule apiextensionsv1.ValidationRule
	parts := map[string]*string{"rule": &rule.Rule, "message": &rule.Message, "fieldPath": &rule.FieldPath}
	for text != "" {
		name, rest, _ := strings.Cut(text, "=")
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil || parts[name] == nil {
			return errors.New("is not rule, message and fieldPath in quotes")
		}
		*parts[name], _ = strconv.Unquote(quoted) // QuotedPrefix has checked it
		text = strings.TrimPrefix(rest[len(quoted):], ",")
	}
	s.expressions = append(s.expressions, rule)
	return nil
}

// allowEmpty lets a string be empty, as it may be in an optional field.
func (s *jsonSchema) allowEmpty() {
	if len(s.Enum) > 0 {
		s.Enum = append(slices.Clip(s.Enum), "")
	}
	if s.Pattern != "" {
		s.Pattern = strings.TrimSuffix(s.Pattern, "$") + "?$"
	}
}
