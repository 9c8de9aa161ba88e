package manifest_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/installer/manifest"
)

func newKey(t testing.TB) (manifest.PrivateKey, []byte) {
	t.Helper()
	_, private, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := private.MarshalText()
	require.NoError(t, err)
	key, err := manifest.ParsePrivateKey(text)
	require.NoError(t, err)
	return key, text
}

func TestSignAndVerify(t *testing.T) {
	t.Parallel()
	text := encode(t, example())
	key, _ := newKey(t)
	other, _ := newKey(t)
	signature, err := manifest.Sign(text, key)
	require.NoError(t, err)
	m, err := manifest.Verify(text, signature, []manifest.Key{other.Public(), key.Public()})
	require.NoError(t, err)
	assert.Equal(t, "v0.1.0", m.Version)

	parsed, err := manifest.ParseKey([]byte("untrusted comment: minisign public key\n" + key.Public().String() + "\n"))
	require.NoError(t, err)
	assert.Equal(t, key.Public().String(), parsed.String())
	assert.Equal(t, key.Public().ID(), parsed.ID())

	for name, test := range map[string]struct {
		manifest, signature string
		keys                []manifest.Key
		err                 string
	}{
		"another key":     {string(text), string(signature), []manifest.Key{other.Public()}, "is of the key " + key.Public().ID() + ", which is not trusted; trusted: " + other.Public().ID()},
		"another text":    {strings.Replace(string(text), "v0.1.0", "v0.1.1", 1), string(signature), []manifest.Key{key.Public()}, "does not fit manifest.json"},
		"no signature":    {string(text), "", []manifest.Key{key.Public()}, "is not a signature of minisign"},
		"a page":          {string(text), "<html>\n\n\n\n", []manifest.Key{key.Public()}, "is not a signature of minisign"},
		"other line ends": {string(text), strings.ReplaceAll(string(signature), "\n", "\r\n"), []manifest.Key{key.Public()}, "is not a signature of minisign"},
		"longer":          {string(text), string(signature) + "\n", []manifest.Key{key.Public()}, "is not a signature of minisign"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := manifest.Verify([]byte(test.manifest), []byte(test.signature), test.keys)
			var refused *manifest.SignatureError
			require.ErrorAs(t, err, &refused)
			assert.Contains(t, err.Error(), test.err)
			assert.NotEmpty(t, refused.Remedy)
		})
	}
}

// TestTrustedComment signs a manifest with a comment of another release.
func TestTrustedComment(t *testing.T) {
	t.Parallel()
	text := encode(t, example())
	key, raw := newKey(t)
	var private minisign.PrivateKey
	require.NoError(t, private.UnmarshalText(raw))
	for _, comment := range []string{
		"", "name:machineadm version:v0.1.0 sequence:8", "name:machineadm version:v0.2.0 sequence:7", "name:other version:v0.1.0 sequence:7",
	} {
		r := minisign.NewReader(bytes.NewReader(text))
		_, err := new(bytes.Buffer).ReadFrom(r)
		require.NoError(t, err)
		signature := r.SignWithComments(private, comment, "signature from minisign secret key")
		_, err = manifest.Verify(text, signature, []manifest.Key{key.Public()})
		require.ErrorContains(t, err, "manifest.json.minisig is of ")
	}
}

func TestSignRefuses(t *testing.T) {
	t.Parallel()
	text := encode(t, example())
	key, _ := newKey(t)
	_, err := manifest.Sign(text[1:], key)
	require.Error(t, err)
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "RWQ", strings.Repeat("A", 56), "untrusted comment: x", "<html>"} {
		_, err := manifest.ParseKey([]byte(text))
		require.ErrorContains(t, err, "is not a minisign public key", text)
		_, err = manifest.ParsePrivateKey([]byte(text))
		require.ErrorContains(t, err, "is not a minisign secret key without a password", text)
	}
	_, text := newKey(t)
	comment, encoded, found := strings.Cut(strings.TrimSpace(string(text)), "\n")
	require.True(t, found)
	key, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	copy(key[2:], "Sc") // the algorithm that derives a key from a password
	_, err = manifest.ParsePrivateKey([]byte(comment + "\n" + base64.StdEncoding.EncodeToString(key)))
	require.ErrorContains(t, err, "is not a minisign secret key without a password")
}

// TestEveryByte changes each byte of a manifest and of its signature in every bit.
func TestEveryByte(t *testing.T) {
	t.Parallel()
	text := encode(t, example())
	key, _ := newKey(t)
	signature, err := manifest.Sign(text, key)
	require.NoError(t, err)
	keys := []manifest.Key{key.Public()}
	each(text, func(i int) {
		_, err := manifest.Verify(text, signature, keys)
		require.Error(t, err, "manifest, byte %d", i)
	})
	each(signature, func(i int) {
		_, err := manifest.Verify(text, signature, keys)
		require.Error(t, err, "signature, byte %d", i)
	})
	for n := range text {
		_, err := manifest.Verify(text[:n], signature, keys)
		require.Error(t, err, "%d bytes of the manifest", n)
	}
	for n := range signature {
		_, err := manifest.Verify(text, signature[:n], keys)
		require.Error(t, err, "%d bytes of the signature", n)
	}
	_, err = manifest.Verify(text, signature, keys)
	require.NoError(t, err)
}

// each calls check with every bit of text changed, one at a time.
func each(text []byte, check func(at int)) {
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			check(i)
			text[i] ^= 1 << bit
		}
	}
}

func FuzzVerify(f *testing.F) {
	text := encode(f, example())
	key, _ := newKey(f)
	good, err := manifest.Sign(text, key)
	require.NoError(f, err)
	f.Add(text, good)
	f.Fuzz(func(t *testing.T, manifestText, signature []byte) {
		_, err := manifest.Verify(manifestText, signature, []manifest.Key{key.Public()})
		if err == nil && (!bytes.Equal(manifestText, text) || !bytes.Equal(signature, good)) {
			t.Errorf("accepted %q with %q", manifestText, signature)
		}
	})
}
