package plugins

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestAnswers: what a plugin refuses is said once, with the field of the storage and the remedy.
func TestAnswers(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]pluginv1.Error{
		"spec.source.uriPrefix: is plain http (use https); spec.source.providerConfig.ca: is not PEM": {
			Code: pluginv1.CodeInvalidConfig, Message: "the document is not valid", Violations: []document.Violation{
				{Field: "uriPrefix", Message: "is plain http", Hint: "use https"}, {Field: "spec.providerConfig.ca", Message: "is not PEM"},
			},
		},
		"spec.source.uriPrefix: the store answers 403; remedy: check the key": {
			Code: pluginv1.CodePrecondition, Message: "the store answers 403", Hint: "check the key",
			Violations: []document.Violation{{Field: "uriPrefix", Message: "the store answers 403", Hint: "check the key"}},
		},
		"the store answers 503; remedy: it is tried again; if it stays, check the health of the store": {Code: pluginv1.CodeRetry, Message: "the store answers 503"},
	} {
		assert.EqualError(t, failure(t.Context(), &answer, "spec.source"), want)
	}
}
