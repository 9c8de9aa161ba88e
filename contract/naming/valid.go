package naming

import "errors"

const (
	maxKind     = 63
	maxProvider = 63 // with the longest kind, a file name stays below the 255 bytes of common file systems
	maxName     = 253
	maxLabel    = 63
)

// ValidKind returns an error unless kind is CamelCase, [A-Z][A-Za-z0-9]{0,62}. The error does not quote kind.
func ValidKind(kind string) error {
	if len(kind) == 0 || len(kind) > maxKind || !isUpper(kind[0]) {
		return errKind()
	}
	for i := range len(kind) {
		if c := kind[i]; !isUpper(c) && !isLower(c) && !isDigit(c) {
			return errKind()
		}
	}
	return nil
}

func errKind() error {
	return errors.New("must be CamelCase: a capital letter, then letters and digits, at most 63 characters")
}

// ValidProvider returns an error unless p matches [a-z0-9]([a-z0-9-]*[a-z0-9])? and has at most 63 characters.
// The error does not quote p.
func ValidProvider(p string) error {
	if !isLabel(p, maxProvider) {
		return errors.New("must consist of a-z, 0-9 and -, begin and end with a letter or digit, and have at most 63 characters")
	}
	return nil
}

// ValidName returns an error unless name is a DNS subdomain as in RFC 1123: labels of a-z, 0-9 and -, each beginning and
// ending with a letter or digit and at most 63 characters long, joined by dots; at most 253 characters in total.
// The error does not quote name.
func ValidName(name string) error {
	err := errors.New("must be a DNS subdomain: labels of a-z, 0-9 and - joined by dots, each beginning and ending with a letter or digit, at most 63 characters a label and 253 altogether")
	if len(name) > maxName {
		return err
	}
	label := 0
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			continue
		}
		if !isLabel(name[label:i], maxLabel) {
			return err
		}
		label = i + 1
	}
	return nil
}

func isLabel(s string, limit int) bool {
	if len(s) == 0 || len(s) > limit || s[0] == '-' || s[len(s)-1] == '-' {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !isLower(c) && !isDigit(c) && c != '-' {
			return false
		}
	}
	return true
}
