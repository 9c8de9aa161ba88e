// Package envelope compares host/envelope with other implementations of the same cryptography: python3-cryptography of Debian
// encrypts what ours decrypts and decrypts what ours encrypts, and openssl derives the same keys.
package envelope

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/host/envelope"
	machine "github.com/machineadm/machineadm/internal/require"
)

const (
	python     = "/usr/bin/python3" // that of Debian: another one does not find Debian's packages
	uri        = "kms://ZW5j@arn:aws:kms:us-west-2:111122223333:key/1234abcd?x='y'&z"
	passphrase = "\xff\x00a passphrase of bytes\r\n\x80"
)

// ask sends requests to oracle.py and returns its answers.
func ask(t *testing.T, requests ...any) []json.RawMessage {
	t.Helper()
	machine.Tool(t, python)
	if exec.CommandContext(t.Context(), python, "-I", "-c", "import cryptography").Run() != nil {
		machine.Missing(t, "needs python3-cryptography (make installs it on Debian as root, see testenv/deps/packages)")
	}
	var input, complaints bytes.Buffer
	for _, r := range requests {
		require.NoError(t, json.NewEncoder(&input).Encode(r))
	}
	cmd := exec.CommandContext(t.Context(), python, "-I", "oracle.py")
	cmd.Stdin, cmd.Stderr = &input, &complaints
	out, err := cmd.Output()
	require.NoError(t, err, complaints.String())
	var answers []json.RawMessage
	for line := range bytes.Lines(out) {
		answers = append(answers, line)
	}
	require.Len(t, answers, len(requests))
	return answers
}

type request struct {
	Document   v1alpha1.EncryptedConfig `json:"document"`
	Passphrase []byte                   `json:"passphrase"`
	Plain      *[]byte                  `json:"plain,omitempty"`
}

func plains() []string {
	return []string{"", "a", "kind: Sysctl\n", strings.Repeat("\x00\xff", 1<<19)}
}

// TestPythonDecryptsOurs: also, Python refuses our document under another name.
func TestPythonDecryptsOurs(t *testing.T) {
	t.Parallel()
	var requests []any
	for _, plain := range plains() {
		doc, err := envelope.Seal("site", "awskms", uri, json.RawMessage(`{"region": "x"}`), []byte(passphrase), []byte(plain))
		require.NoError(t, err)
		requests = append(requests, request{Document: doc, Passphrase: []byte(passphrase)})
		doc.Metadata.Name = "other"
		requests = append(requests, request{Document: doc, Passphrase: []byte(passphrase)})
	}
	answers := ask(t, requests...)
	for i, plain := range plains() {
		var got *[]byte
		require.NoError(t, json.Unmarshal(answers[2*i], &got))
		require.NotNil(t, got)
		assert.True(t, string(*got) == plain, "%d bytes", len(plain))
		assert.JSONEq(t, "null", string(answers[2*i+1]))
	}
}

// TestWeDecryptPythons: with the fewest iterations, ours, and more.
func TestWeDecryptPythons(t *testing.T) {
	t.Parallel()
	var requests []any
	for i, plain := range plains() {
		data := []byte(plain)
		requests = append(requests, request{Passphrase: []byte(passphrase), Plain: &data, Document: v1alpha1.EncryptedConfig{
			Header: v1alpha1.Header{
				APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindEncryptedConfig, Metadata: v1alpha1.Metadata{Name: fmt.Sprint("site-", i)},
			},
			Spec: v1alpha1.EncryptedConfigSpec{
				Provider: "awskms", PassphraseURI: uri, Iterations: []string{"50000", "50001", "210000", "1000000"}[i],
				CipherAlgorithm: "aes-256-gcm", DigestAlgorithm: "sha-512", KeyDerivationAlgorithm: "pbkdf2",
			},
		}})
	}
	answers := ask(t, requests...)
	for i, plain := range plains() {
		var doc v1alpha1.EncryptedConfig
		require.NoError(t, json.Unmarshal(answers[i], &doc))
		got, err := envelope.NewOpener().Open(t.Context(), doc, []byte(passphrase))
		require.NoError(t, err)
		assert.True(t, string(got) == plain, "%d bytes", len(plain))
		doc.Spec.Provider = "vault"
		_, err = envelope.NewOpener().Open(t.Context(), doc, []byte(passphrase))
		assert.Error(t, err)
	}
}

// derive returns the key that openssl derives.
func derive(t testing.TB, passphrase, salt []byte, iterations string) []byte {
	t.Helper()
	key, err := exec.CommandContext(t.Context(), "openssl", "kdf", "-binary", "-keylen", "32", "-kdfopt", "digest:SHA512", "-kdfopt",
		"hexpass:"+hex.EncodeToString(passphrase), "-kdfopt", "hexsalt:"+hex.EncodeToString(salt), "-kdfopt", "iter:"+iterations, "PBKDF2").Output()
	require.NoError(t, err)
	return key
}

// TestOpenSSLDerivesTheKeys: the keys of the contract's vectors.
func TestOpenSSLDerivesTheKeys(t *testing.T) {
	t.Parallel()
	machine.Tool(t, "openssl")
	data, err := os.ReadFile("../../contract/v1alpha1/testdata/encrypted.jsonl")
	require.NoError(t, err)
	keys := 0
	for line := range bytes.Lines(data) {
		var v struct {
			Passphrase, Key string
			Document        v1alpha1.EncryptedConfig
		}
		require.NoError(t, json.Unmarshal(line, &v))
		if v.Key == "" {
			continue
		}
		keys++
		passphrase, err := hex.DecodeString(v.Passphrase)
		require.NoError(t, err)
		salt, err := base64.StdEncoding.DecodeString(v.Document.Spec.Salt)
		require.NoError(t, err)
		assert.Equal(t, v.Key, hex.EncodeToString(derive(t, passphrase, salt, v.Document.Spec.Iterations)))
	}
	assert.Equal(t, 3, keys)
}
