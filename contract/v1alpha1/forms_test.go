package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestIsHostName(t *testing.T) {
	t.Parallel()
	label := strings.Repeat("a", 63)
	for text, want := range map[string]bool{
		"a": true, "A.b-c.1": true, "192.0.2.1": true, label + ".x": true,
		"": false, ".": false, "a.": false, "a..b": false, "-a": false, "a-": false, "a_b": false, "a b": false, "a\n": false, "é": false,
		label + "a":                          false,
		strings.Repeat(label+".", 4) + "abc": false,
	} {
		assert.Equal(t, want, v1alpha1.IsHostName(text), "%q", text)
	}
}
