package pluginv1_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func TestNewClaim(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	bytesOf := func(parts ...string) (out [][]byte) {
		for _, p := range parts {
			out = append(out, []byte(p))
		}
		return out
	}
	digests := map[string]string{}
	for name, parts := range map[string][][]byte{
		"absent": nil, "empty": bytesOf(""), "two empty": bytesOf("", ""), "value": bytesOf("ab"),
		"split": bytesOf("a", "b"), "swapped": bytesOf("b", "a"),
	} {
		c := pluginv1.NewClaim(key, "file:/etc/motd", "spec.text", parts...)
		assert.Equal(t, "file:/etc/motd", c.ID)
		assert.Equal(t, "spec.text", c.Field)
		digest := hex.EncodeToString(c.Digest)
		assert.Len(t, c.Digest, 32)
		assert.NotContains(t, digests, digest, name)
		digests[digest] = name
		assert.Equal(t, c, pluginv1.NewClaim(key, c.ID, c.Field, parts...), "the digest is stable")
		assert.NotEqual(t, c.Digest, pluginv1.NewClaim(key[1:], c.ID, c.Field, parts...).Digest, "the digest is keyed")
		assert.Empty(t, pluginv1.NewClaim(nil, c.ID, c.Field, parts...).Digest)
	}
	// The vector of contract/SPEC.md.
	require.Equal(t, "value", digests["a701e662e638896a40b42580f7d8b4234078ce43fb61615477c414c68a4ffc72"])
}

// TestClaimVectors: testdata/claims.jsonl is for plugins in any language.
func TestClaimVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/claims.jsonl")
	require.NoError(t, err)
	count := 0
	for line := range bytes.Lines(data) {
		count++
		var v struct {
			ID, Path, Part, Digest string
			Value                  []string
		}
		require.NoError(t, json.Unmarshal(line, &v))
		var value [][]byte
		for _, part := range v.Value {
			value = append(value, []byte(part))
		}
		made := pluginv1.NewClaim([]byte("0123456789abcdef0123456789abcdef"), v.ID, "", value...)
		assert.Equal(t, v.Digest, hex.EncodeToString(made.Digest), v.ID)
		path, part, ok := pluginv1.ClaimedFile(v.ID)
		require.Equal(t, v.Path != "", ok, v.ID)
		if ok {
			assert.Equal(t, []string{v.Path, v.Part}, []string{path, part})
			assert.Equal(t, v.ID, pluginv1.FileClaim(v.Path, v.Part))
		}
	}
	assert.Greater(t, count, 15)
	spec, err := os.ReadFile("../SPEC.md")
	require.NoError(t, err)
	rows := regexp.MustCompile("(?m)^\\| `([a-z0-9]+:)([a-z-]*)[^`]*`").FindAllSubmatch(spec, -1)
	assert.GreaterOrEqual(t, len(rows), 11)
	for _, row := range rows { // of the node, the whole id is in the table
		id := string(row[1])
		if id == "node:" {
			id += string(row[2])
		}
		assert.Contains(t, string(data), `{"id": "`+id, "no line for a row of the table in SPEC.md")
	}
}

// TestClaimsWithoutKey: a digest without a key could be searched for, so no claim is sent then.
func TestClaimsWithoutKey(t *testing.T) {
	t.Parallel()
	claims := []pluginv1.Claim{{ID: "file:/etc/motd", Digest: make([]byte, 32)}}
	for name, key := range map[string][]byte{"without": nil, "with": {1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failure error
			client := serveFake(t, &fake{plan: func(pluginv1.Request) (pluginv1.Plan, error) {
				return pluginv1.Plan{Claims: claims}, failure
			}})
			want := claims
			if key == nil {
				want = nil
			}
			plan, err := client.Plan(t.Context(), pluginv1.Request{ClaimKey: key})
			require.NoError(t, err)
			assert.Equal(t, want, plan.Claims)
			failure = &pluginv1.Error{Code: pluginv1.CodePrecondition, Message: "not ready", Claims: claims}
			_, err = client.Plan(t.Context(), pluginv1.Request{ClaimKey: key})
			assert.Equal(t, want, pluginv1.AsError(err).Claims)
		})
	}
}
