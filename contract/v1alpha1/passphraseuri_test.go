package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestParsePassphraseURI(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]v1alpha1.PassphraseURI{
		"kms://ZW5j@arn:aws:kms:us-west-2:111122223333:key/1234abcd": {"kms", "ZW5j", "arn:aws:kms:us-west-2:111122223333:key/1234abcd"},
		"file:///etc/machineadm/key":                                 {"file", "", "/etc/machineadm/key"},
		"file:///C:/machineadm/key":                                  {"file", "", "/C:/machineadm/key"},
		"vault://vault:v1:a@b+c/d==@transit/keys/node?x=1#y":         {"vault", "vault:v1:a@b+c/d==", "transit/keys/node?x=1#y"},
		"a+b-c.1://a://b@c":                                          {"a+b-c.1", "a://b", "c"},
		"x://@@a":                                                    {"x", "@", "a"},
		"x://[::1]:8200/a%20b!$&'()*,;~_":                            {"x", "", "[::1]:8200/a%20b!$&'()*,;~_"},
	} {
		got, err := v1alpha1.ParsePassphraseURI(uri)
		require.NoError(t, err, uri)
		assert.Equal(t, want, got)
		assert.Equal(t, uri, got.String())
	}
}

func TestParsePassphraseURIRefuses(t *testing.T) {
	t.Parallel()
	const canary = "hunter2canary"
	for _, c := range []struct{ uri, why string }{
		{"", "scheme"},
		{canary, "scheme"},
		{"://" + canary, "scheme"},
		{"kms:" + canary, "scheme"},
		{"kms:/" + canary, "scheme"},
		{"KMS://" + canary, "scheme"},
		{"1kms://" + canary, "scheme"},
		{" kms://" + canary, "scheme"},
		{"k\x00s://" + canary, "scheme"},
		{"k_s://" + canary, "scheme"},
		{"kms://", "location"},
		{"kms://" + canary + "@", "location"},
		{"kms://@" + canary, "encrypted passphrase"},
		{"kms://@", "encrypted passphrase"},
		{"kms://" + canary + " x", "characters"},
		{"kms://" + canary + "\n", "characters"},
		{"kms://x\"" + canary, "characters"},
		{"kms://x\\" + canary, "characters"},
		{"kms://x<" + canary, "characters"},
		{"kms://x\x7f" + canary, "characters"},
		{"kms://ä" + canary, "characters"},
		{"kms://x\xff" + canary, "characters"},
	} {
		got, err := v1alpha1.ParsePassphraseURI(c.uri)
		require.Error(t, err, "%q", c.uri)
		assert.Zero(t, got, "%q", c.uri)
		assert.Contains(t, err.Error(), c.why, "%q", c.uri)
		assert.NotContains(t, err.Error(), canary)
	}
}

// FuzzParsePassphraseURI: the parts of an accepted URI join to the same URI, and no part needs an escape in JSON.
func FuzzParsePassphraseURI(f *testing.F) {
	for _, seed := range []string{"kms://ZW5j@arn:aws:kms:us-west-2:111122223333:key/1234abcd", "file:///etc/key", "a://b@c@d", "x://@y", "x://\"", "é://x", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		u, err := v1alpha1.ParsePassphraseURI(uri)
		if err != nil {
			assert.Zero(t, u)
			return
		}
		assert.Equal(t, uri, u.String())
		assert.NotEmpty(t, u.Location)
		assert.NotContains(t, u.Location, "@")
		assert.False(t, strings.ContainsFunc(uri, func(r rune) bool { return r <= ' ' || r >= 0x7f || r == '"' || r == '\\' }))
	})
}
