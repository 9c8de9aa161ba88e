package document

import "reflect"

// maxViolations bounds the violations of one Unmarshal.
const maxViolations = 10 * MaxErrors

type unmarshaler struct {
	violations []Violation
	own        map[uintptr]bool // embedded pointers that Unmarshal allocated
	within     []level          // the structs that contain the current value, outermost first
}

// level is a struct with its path.
type level struct {
	path Path
	of   reflect.Type
}

func (u *unmarshaler) refuse(p Path, message, hint string) {
	switch {
	case len(u.violations) < maxViolations:
		u.violations = append(u.violations, Violation{Field: string(p), Message: message, Hint: hint})
	case len(u.violations) == maxViolations:
		u.violations = append(u.violations, Violation{Message: "has more errors than are listed"})
	}
}
