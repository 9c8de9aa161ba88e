package conformance

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

// TestHide: the placeholder is in quotes once, and the field is the canary alone.
func TestHide(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: example.com/v1\nkind: X\nmetadata: {name: a}\nspec:\n"
	for text, want := range map[string]string{
		"  token: {value: hunter2}\n":               "  token: {value: \"${canary}\"}\n",
		"  token: hunter2 # a comment\n":            "  token: \"${canary}\" # a comment\n",
		"  token: {value: \"hunter2\", other: x}\n": "  token: {value: \"${canary}\", other: x}\n",
		"  token: \"hunter2\"\n":                    "  token: \"${canary}\"\n",
		"  token: 'hunter2'\n":                      "  token: '${canary}'\n",
		"  token: |-\n    hunter2\n  other: x\n":    "  token: |-\n    ${canary}\n  other: x\n",
		"  token: >-\n    hunter2\n":                "  token: >-\n    ${canary}\n",
	} {
		got := hide("config.yaml", []byte(head+text), "hunter2", "word")
		assert.Equal(t, head+want, string(got))
		data, err := testcase.DecodeOne("config.yaml", testcase.Fill(got, "word"))
		require.NoError(t, err)
		assert.Regexp(t, `"(token|value)":"word"`, string(data))
		_, err = testcase.DecodeOne("config.yaml", got)
		assert.NoError(t, err, "an editor refuses %s", got)
	}
}
