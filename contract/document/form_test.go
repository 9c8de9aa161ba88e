package document_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestHintsOfForms: a value of another shape gets the form that the field has.
func TestHintsOfForms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"node":{"kubeletArgs":{}}}`:                "write kubeletArgs: [{name: ..., value: ...}]",
		`{"node":{"labels":["a"]}}`:                  "write labels: {NAME: ...}",
		`{"node":{"taints":[1]}}`:                    "write {key: ..., effect: ...}",
		`{"discovery":{"token":"a"}}`:                "write token: {value: ...}",
		`{"discovery":"a"}`:                          "write discovery: {token: {value: ...}}",
		`{"certificates":{"ca":"a"}}`:                "write ca: {certificate: ..., key: {value: ...}}",
		`{"discovery":{"token":{"valueFrom":{}}}}`:   "",
		`{"apiServer":{"env":[{"name":{"a":"b"}}]}}`: "",
	} {
		var node v1alpha1.KubernetesNode
		all := document.Unmarshal([]byte(`{"spec":`+text+`}`), &node)
		if assert.Len(t, all, 1, text) {
			assert.Equal(t, want, all[0].Hint, text)
		}
	}
}
