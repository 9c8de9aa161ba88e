package v1alpha1

import (
	"fmt"
	"strings"
)

// timesyncRules collects what is wrong with a Timesync.
type timesyncRules struct {
	all     []Refusal
	sources map[string][]any // the field of each address and device
	keys    map[int]keyAt
}

type keyAt struct {
	key   TimeKey
	field []any
}

func (r *timesyncRules) refuse(at []any, message, hint string) {
	r.all = append(r.all, Refusal{at, message, hint})
}

func below(at []any, more ...any) []any { return append(append([]any{}, at...), more...) }

// fieldOf is a field in a message.
func fieldOf(at []any) string {
	var text strings.Builder
	for i, step := range at {
		switch s := step.(type) {
		case int:
			fmt.Fprintf(&text, "[%d]", s)
		default:
			if i > 0 {
				text.WriteByte('.')
			}
			fmt.Fprint(&text, s)
		}
	}
	return text.String()
}
