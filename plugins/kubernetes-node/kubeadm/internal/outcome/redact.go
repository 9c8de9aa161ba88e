package outcome

import (
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Redactor hides secrets in the output of other programs: the document's, and what has the form of one that Kubernetes
// generates.
type Redactor struct {
	values *strings.Replacer
	forms  *regexp.Regexp
}

// NewRedactor returns a Redactor of these secrets of the document.
func NewRedactor(secrets ...[]byte) Redactor {
	var pairs []string
	for _, secret := range secrets {
		// A program can print a part of a secret: a line of a key, or the second half of a token.
		for _, part := range strings.FieldsFunc(string(secret), func(r rune) bool { return r == '\n' || r == '.' }) {
			if part = strings.TrimSpace(part); len(part) >= 12 {
				pairs = append(pairs, part, v1alpha1.Redacted)
			}
		}
	}
	return Redactor{values: strings.NewReplacer(pairs...), forms: regexp.MustCompile(
		`(?:sha256:)?\b[0-9a-f]{64}\b` + // a certificate key, or a digest, which is not secret
			`|\b[a-z0-9]{6}\.[a-z0-9]{16}\b` + // a bootstrap token
			`|\beyJ[\w-]+\.[\w-]+\.[\w-]+` + // a token of a service account
			`|[A-Za-z0-9+/=]{60,}`)} // a line of a private key
}

// Text returns the text without secrets.
func (r Redactor) Text(text string) string {
	return r.values.Replace(r.forms.ReplaceAllStringFunc(text, func(match string) string {
		if strings.HasPrefix(match, "sha256:") {
			return match
		}
		return v1alpha1.Redacted
	}))
}
