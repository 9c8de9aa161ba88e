package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
)

// MaxDocuments is how many documents a machine may have. It bounds the time of Order, and the status that lists them.
const MaxDocuments = 1000

// CountError reports more than MaxDocuments documents.
type CountError struct{}

// Error implements error.
func (*CountError) Error() string {
	return fmt.Sprintf("there are more than %d documents: a machine has a few of each kind", MaxDocuments)
}

// DuplicateError reports two documents of one kind and name.
type DuplicateError struct{ Kind, Name string }

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("two documents are %s/%s: give each document of a kind a name of its own", e.Kind, e.Name)
}

// ReferenceError reports a constraint that names no document.
type ReferenceError struct {
	// Kind and Name identify the document with the constraint.
	Kind, Name string
	// Field is the path of the constraint, such as before[0], and Reference its text.
	Field, Reference string
}

// Error implements error.
func (e *ReferenceError) Error() string {
	return fmt.Sprintf("%s/%s: %s: no document is %q: write KIND or KIND/NAME of a document of the stream", e.Kind, e.Name, e.Field, e.Reference)
}

// CycleError reports constraints that contradict each other.
type CycleError struct {
	// Documents are the documents of the cycle, as KIND/NAME. Each comes before the next, and the last before the first.
	Documents []string
}

// Error names the whole cycle.
func (e *CycleError) Error() string {
	return strings.Join(append(slices.Clone(e.Documents), e.Documents[0]), " before ") + ": remove one of these constraints"
}

// InvalidError reports a document that every node would refuse.
type InvalidError struct {
	Kind, Name string
	// Violations are all errors of the document, each with its field. No message quotes a value.
	Violations []document.Violation
}

// Error lists the violations.
func (e *InvalidError) Error() string {
	list := make([]string, len(e.Violations))
	for i, v := range e.Violations {
		list[i] = v.Message
		if v.Field != "" {
			list[i] = v.Field + ": " + v.Message
		}
		if v.Hint != "" {
			list[i] += " (" + v.Hint + ")"
		}
	}
	return fmt.Sprintf("%s/%s: %s", e.Kind, e.Name, strings.Join(list, "; "))
}
