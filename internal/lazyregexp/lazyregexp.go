// Package lazyregexp compiles regular expressions when they are first used. A plugin is started several times in a run, and most expressions are
// for fields that the documents of the run do not have: to compile all of them took a tenth of a second of some starts.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. The function panics if the text is no regular expression.
func New(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
