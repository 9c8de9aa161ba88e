package envelope

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const canary = "hunter2canary"

// TestCheckRefuses: each wrong value of each field, with the canary in it, is one violation of that field, which does not quote it.
func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	valid := sealed(t, stream)
	require.NoError(t, Check(valid))
	long := base64.StdEncoding.EncodeToString(make([]byte, 17))
	base64s := []string{"", canary, "!!!!", "AAAA\n", "AA\nAA", "A===", "====", "=AAA", "AA=A", "AAA=AAAA", "-___", long[:22] + "B=", long + "\r\n"}
	for name, c := range map[string]struct {
		of     func(*v1alpha1.EncryptedConfig) *string
		values []string
	}{
		"apiVersion": {func(d *v1alpha1.EncryptedConfig) *string { return &d.APIVersion }, []string{"", "v1", canary}},
		"kind":       {func(d *v1alpha1.EncryptedConfig) *string { return &d.Kind }, []string{"", "RemoteConfig", canary}},
		"metadata.name": {
			func(d *v1alpha1.EncryptedConfig) *string { return &d.Metadata.Name },
			[]string{"", "A" + canary, canary + `"`, canary + "\n", strings.Repeat("a.", 127) + "a"},
		},
		"provider": {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.Provider }, []string{"", "../" + canary, canary + `"`}},
		"passphraseURI": {
			func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.PassphraseURI },
			[]string{"", canary, "kms://" + canary + `"`, "kms://" + canary + "@"},
		},
		"ciphertext": {
			func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.Ciphertext },
			append(base64s, encode("123456789012345")),
		},
		"salt":            {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.Salt }, append(base64s, encode("123456789012345"), long)},
		"iv":              {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.IV }, append(base64s, encode("12345678901"), long)},
		"iterations":      {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.Iterations }, wrongIterations()},
		"cipherAlgorithm": {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.CipherAlgorithm }, []string{""}},
		"digestAlgorithm": {func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.DigestAlgorithm }, []string{""}},
		"keyDerivationAlgorithm": {
			func(d *v1alpha1.EncryptedConfig) *string { return &d.Spec.KeyDerivationAlgorithm }, []string{""},
		},
	} {
		for _, value := range c.values {
			doc := valid
			*c.of(&doc) = value
			err := Check(doc)
			code, fields := said(t, err)
			assert.Equal(t, pluginv1.CodeInvalidConfig, code)
			assert.Equal(t, []string{name}, fields, "%q", value)
			assert.NotContains(t, err.Error(), canary)
			_, opened := open(t, doc, passphrase())
			assert.Equal(t, err, opened, "Open checks first")
		}
	}
}

func wrongIterations() []string {
	return []string{
		"", "0", "-50000", "+50000", "050000", "49999", "10000001", "5e4", "50_000", " 50000", "50000\n", "50000.0", "0xc350",
		"99999999999999999999", "٥٠٠٠٠", canary,
	}
}

// TestCheckReportsEverything: one error has every field that is wrong, in the order of the document.
func TestCheckReportsEverything(t *testing.T) {
	t.Parallel()
	_, fields := said(t, Check(v1alpha1.EncryptedConfig{}))
	assert.Equal(t, []string{
		"apiVersion", "kind", "metadata.name", "provider", "passphraseURI", "ciphertext", "salt", "iv", "iterations",
		"cipherAlgorithm", "digestAlgorithm", "keyDerivationAlgorithm",
	}, fields)
}

// TestUnsupported: another algorithm is Unsupported with its field, whatever else is wrong.
func TestUnsupported(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*v1alpha1.EncryptedConfigSpec)
		fields []string
	}{
		"hkdf":          {func(s *v1alpha1.EncryptedConfigSpec) { s.KeyDerivationAlgorithm = "hkdf-sha512" }, []string{"keyDerivationAlgorithm"}},
		"capitals":      {func(s *v1alpha1.EncryptedConfigSpec) { s.CipherAlgorithm = "AES-256-GCM" }, []string{"cipherAlgorithm"}},
		"digest":        {func(s *v1alpha1.EncryptedConfigSpec) { s.DigestAlgorithm = canary }, []string{"digestAlgorithm"}},
		"two":           {func(s *v1alpha1.EncryptedConfigSpec) { s.CipherAlgorithm, s.DigestAlgorithm = "x", canary }, []string{"cipherAlgorithm", "digestAlgorithm"}},
		"and malformed": {func(s *v1alpha1.EncryptedConfigSpec) { s.KeyDerivationAlgorithm, s.Salt = "x", "x" }, []string{"keyDerivationAlgorithm"}},
	} {
		doc := sealed(t, stream)
		c.change(&doc.Spec)
		err := Check(doc)
		code, fields := said(t, err)
		assert.Equal(t, pluginv1.CodeUnsupported, code, name)
		assert.Equal(t, c.fields, fields, name)
		assert.NotContains(t, err.Error(), canary)
	}
}

func TestLimitsOfIterations(t *testing.T) {
	t.Parallel()
	for _, n := range []string{"50000", "50001", "210000", "9999999", "10000000"} {
		assert.NoError(t, checkIterations(n))
	}
}

// FuzzCheck: what Check accepts needs no escape in the additional data, and is base64 as an encoder writes it. Open of it fails
// in one way, or not at all.
func FuzzCheck(f *testing.F) {
	s := sealed(f, stream).Spec
	f.Add("site", s.Provider, s.PassphraseURI, s.Ciphertext, s.Salt, s.IV, s.Iterations, s.KeyDerivationAlgorithm)
	f.Add("a.b", "x", "file:///key", encode("0123456789abcdef"), s.Salt, s.IV, "10000000", "hkdf-sha512")
	f.Add("", "", "", "AA\n==", "====", "A", "050000", "")
	f.Fuzz(func(t *testing.T, name, provider, uri, ciphertext, salt, iv, iterations, kdf string) {
		doc := v1alpha1.EncryptedConfig{
			Header: v1alpha1.Header{APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindEncryptedConfig, Metadata: v1alpha1.Metadata{Name: name}},
			Spec: v1alpha1.EncryptedConfigSpec{
				Provider: provider, PassphraseURI: uri, Ciphertext: ciphertext, Salt: salt, IV: iv, Iterations: iterations,
				CipherAlgorithm: cipherAlgorithm, DigestAlgorithm: digestAlgorithm, KeyDerivationAlgorithm: kdf,
			},
		}
		if err := Check(doc); err != nil {
			_, fields := said(t, err)
			assert.NotEmpty(t, fields)
			return
		}
		var members map[string]string
		require.NoError(t, json.Unmarshal(additionalData(doc), &members))
		assert.Equal(t, []string{name, provider, uri}, []string{members["name"], members["provider"], members["passphraseURI"]})
		for text, least := range map[string]int{ciphertext: 16, salt: 16, iv: 12} {
			data := decode(t, text)
			assert.GreaterOrEqual(t, len(data), least)
			assert.Equal(t, text, base64.StdEncoding.EncodeToString(data))
		}
		doc.Spec.Iterations = "50000" // a million of them is too slow
		if _, err := open(t, doc, passphrase()); err != nil {
			_, fields := said(t, err)
			assert.Equal(t, []string{"ciphertext"}, fields)
		}
	})
}

// FuzzDecodedLen: the length is the length of the decoded text, for exactly what an encoder writes.
func FuzzDecodedLen(f *testing.F) {
	for _, seed := range []string{"", "AAAA", "AA==", "AAA=", "AB==", "AAAA\n", "A\nAA", "AA=A", "====", "AAAAAAA=", "\r\n\r\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		data, err := base64.StdEncoding.DecodeString(s)
		want := len(data)
		if err != nil || s == "" || base64.StdEncoding.EncodeToString(data) != s {
			want = -1
		}
		assert.Equal(t, want, decodedLen(s), "%q", s)
	})
}
