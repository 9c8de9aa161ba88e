package document

// maxViolations bounds the violations of one Unmarshal.
const maxViolations = 10 * MaxErrors

type unmarshaler struct {
	violations []Violation
	fields     typeFields
	own        map[uintptr]bool // embedded pointers that Unmarshal allocated
}

func (u *unmarshaler) refuse(p Path, message, hint string) {
	switch {
	case len(u.violations) < maxViolations:
		u.violations = append(u.violations, Violation{Field: string(p), Message: message, Hint: hint})
	case len(u.violations) == maxViolations:
		u.violations = append(u.violations, Violation{Message: "has more errors than are listed"})
	}
}
