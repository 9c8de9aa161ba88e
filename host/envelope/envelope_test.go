package envelope

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

func TestSeal(t *testing.T) {
	t.Parallel()
	salts, ivs := map[string]bool{}, map[string]bool{}
	for _, plain := range []string{"", strings.Repeat("\x00\xff", 500)} {
		doc, err := Seal("site", "awskms", uri, json.RawMessage(`{"region":"us-west-2"}`), passphrase(), []byte(plain))
		require.NoError(t, err)
		assert.Equal(t, v1alpha1.EncryptedConfig{
			Header: v1alpha1.Header{APIVersion: v1alpha1.APIVersion, Kind: "EncryptedConfig", Metadata: v1alpha1.Metadata{Name: "site"}},
			Spec: v1alpha1.EncryptedConfigSpec{
				Provider: "awskms", PassphraseURI: uri, Ciphertext: doc.Spec.Ciphertext, Salt: doc.Spec.Salt, IV: doc.Spec.IV,
				CipherAlgorithm: "aes-256-gcm", DigestAlgorithm: "sha-512", Iterations: "210000", KeyDerivationAlgorithm: "pbkdf2",
				ProviderConfig: json.RawMessage(`{"region":"us-west-2"}`),
			},
		}, doc)
		assert.Len(t, decode(t, doc.Spec.Salt), 16)
		assert.Len(t, decode(t, doc.Spec.IV), 12)
		assert.Len(t, decode(t, doc.Spec.Ciphertext), len(plain)+16)
		got, err := open(t, doc, passphrase())
		require.NoError(t, err)
		assert.Equal(t, plain, string(got))
		salts[doc.Spec.Salt], ivs[doc.Spec.IV] = true, true
	}
	assert.Len(t, salts, 2, "another one in each document")
	assert.Len(t, ivs, 2)
}

func TestSealRefuses(t *testing.T) {
	t.Parallel()
	for field, args := range map[string][3]string{
		"metadata.name": {"-" + canary, "awskms", uri},
		"provider":      {"site", "../" + canary, uri},
		"passphraseURI": {"site", "awskms", canary},
	} {
		doc, err := Seal(args[0], args[1], args[2], nil, passphrase(), []byte(canary))
		assert.Zero(t, doc)
		code, fields := said(t, err)
		assert.Equal(t, pluginv1.CodeInvalidConfig, code)
		assert.Equal(t, []string{field}, fields)
		assert.NotContains(t, err.Error(), canary)
	}
}

func TestLengthOfPassphrase(t *testing.T) {
	t.Parallel()
	for length, field := range map[int]string{0: "passphraseURI", 13: "passphraseURI", 14: ""} {
		secret := []byte(strings.Repeat("p", length))
		doc, err := Seal("site", "file", "file:///key", nil, secret, []byte(stream))
		if field == "" {
			require.NoError(t, err)
			plain, err := open(t, doc, secret)
			require.NoError(t, err)
			assert.Equal(t, stream, string(plain))
			continue
		}
		_, opened := open(t, sealed(t, stream), secret)
		assert.Equal(t, err, opened)
		code, fields := said(t, err)
		assert.Equal(t, pluginv1.CodeInvalidConfig, code)
		assert.Equal(t, []string{field}, fields)
		assert.NotContains(t, err.Error(), "ppp")
	}
}

// cannotOpen asserts that a document is not decrypted, and that the error is the same for each cause.
func cannotOpen(t *testing.T, doc v1alpha1.EncryptedConfig, passphrase []byte, why ...any) {
	t.Helper()
	plain, err := open(t, doc, passphrase)
	assert.Nil(t, plain, why...)
	assert.EqualError(t, err, "InvalidConfig: spec.ciphertext: cannot be decrypted: the passphrase is another one, "+
		"or a field of the document has changed since it was encrypted", why...)
}

func TestOtherPassphrase(t *testing.T) {
	t.Parallel()
	doc := sealed(t, stream)
	for _, i := range []int{0, 1, 30} {
		other := passphrase()
		other[i] ^= 1
		cannotOpen(t, doc, other, i)
	}
	cannotOpen(t, doc, append(passphrase(), '\n'))
	cannotOpen(t, doc, passphrase()[1:])
}

// TestFlippedBytes flips one bit in every byte of what is encoded.
func TestFlippedBytes(t *testing.T) {
	t.Parallel()
	doc := sealed(t, "abc")
	for name, of := range map[string]func(*v1alpha1.EncryptedConfigSpec) *string{
		"ciphertext": func(s *v1alpha1.EncryptedConfigSpec) *string { return &s.Ciphertext },
		"salt":       func(s *v1alpha1.EncryptedConfigSpec) *string { return &s.Salt },
		"iv":         func(s *v1alpha1.EncryptedConfigSpec) *string { return &s.IV },
	} {
		data := decode(t, *of(&doc.Spec))
		for i := range data {
			data[i] ^= 1 << (i % 8)
			changed := doc
			*of(&changed.Spec) = base64.StdEncoding.EncodeToString(data)
			cannotOpen(t, changed, passphrase(), name, i)
			data[i] ^= 1 << (i % 8)
		}
	}
	shorter := decode(t, doc.Spec.Ciphertext)[:3+15]
	doc.Spec.Ciphertext = base64.StdEncoding.EncodeToString(shorter)
	cannotOpen(t, doc, passphrase(), "cut")
}

// TestExchangedFields: no field and no group of fields of another document of the same passphrase fits.
func TestExchangedFields(t *testing.T) {
	t.Parallel()
	of := func(d *v1alpha1.EncryptedConfig) []*string {
		return []*string{
			&d.Metadata.Name, &d.Spec.Provider, &d.Spec.PassphraseURI, &d.Spec.Salt, &d.Spec.Iterations, &d.Spec.IV, &d.Spec.Ciphertext,
		}
	}
	first := sealed(t, stream)
	second := sealed(t, stream, func(d *v1alpha1.EncryptedConfig) {
		d.Metadata.Name, d.Spec.Provider, d.Spec.PassphraseURI = "other", "vault", uri+"ef"
		d.Spec.Salt, d.Spec.Iterations = encode("fedcba9876543210"), "50001"
	})
	count := len(of(&first))
	for group := 1; group < 1<<count-1; group++ { // mixtures of the two: each field alone, and some others
		if group%13 != 0 && group&(group-1) != 0 {
			continue
		}
		mixed := first
		for i, value := range of(&second) {
			if group&(1<<i) != 0 {
				*of(&mixed)[i] = *value
			}
		}
		cannotOpen(t, mixed, passphrase(), group)
	}
	plain, err := open(t, second, passphrase())
	require.NoError(t, err)
	assert.Equal(t, stream, string(plain))
}

// TestUnauthenticatedFields: what the provider and the host use before there is a passphrase can change.
func TestUnauthenticatedFields(t *testing.T) {
	t.Parallel()
	doc := sealed(t, stream)
	doc.Metadata.Timeout, doc.Metadata.When = "5m", &target.Selector{OS: []string{"linux"}}
	doc.Spec.ProviderConfig = json.RawMessage(`{"token":{"value":"rotated"}}`)
	plain, err := open(t, doc, passphrase())
	require.NoError(t, err)
	assert.Equal(t, stream, string(plain))
}

// TestMemory: beside the document, Open allocates the stream once and little more.
func TestMemory(t *testing.T) {
	plain := strings.Repeat("0123456789abcdef", 10<<20/16)
	doc := sealed(t, plain)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := open(t, doc, passphrase())
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	assert.True(t, string(got) == plain)
	allocated := after.TotalAlloc - before.TotalAlloc
	t.Logf("%d KiB for %d KiB", allocated>>10, len(plain)>>10)
	assert.Less(t, allocated, uint64(len(plain)*11/10))
}

// TestApprovedAlgorithms runs tests of this package where Go refuses every algorithm that FIPS 140 does not approve.
func TestApprovedAlgorithms(t *testing.T) {
	t.Parallel()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.v", "-test.run=^(TestSeal|TestVectors|TestMode)$")
	child.Env = append(os.Environ(), "GODEBUG=fips140=only")
	out, err := child.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "in FIPS 140-only mode")
	for _, name := range []string{"TestSeal", "TestVectors"} {
		assert.Contains(t, string(out), "--- PASS: "+name+" ")
	}
}
