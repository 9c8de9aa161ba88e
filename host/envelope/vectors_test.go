package envelope

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha512"
	"encoding/hex"
	"encoding/json"
	"os"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestVectors: encrypted.jsonl is for other implementations. python3-cryptography wrote it, from the text of the contract.
func TestVectors(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../contract/v1alpha1/testdata/encrypted.jsonl")
	require.NoError(t, err)
	count := 0
	for line := range bytes.Lines(data) {
		count++
		var v struct {
			Vector, Passphrase, AdditionalData, Key, Plain, Fails string
			Document                                              json.RawMessage
		}
		require.NoError(t, json.Unmarshal(line, &v))
		var doc v1alpha1.EncryptedConfig
		require.Empty(t, document.Unmarshal(v.Document, &doc), v.Vector)
		passphrase, err := hex.DecodeString(v.Passphrase)
		require.NoError(t, err)
		plain, err := open(t, doc, passphrase)
		if v.Fails != "" {
			code, _ := said(t, err)
			assert.Equal(t, v.Fails, code.String(), v.Vector)
			continue
		}
		require.NoError(t, err, v.Vector)
		assert.Equal(t, v.Plain, string(plain), v.Vector)
		assert.Equal(t, v.AdditionalData, string(additionalData(doc)), v.Vector)
		rounds, err := strconv.Atoi(doc.Spec.Iterations)
		require.NoError(t, err)
		key, err := pbkdf2.Key(sha512.New, string(passphrase), decode(t, doc.Spec.Salt), rounds, 32)
		require.NoError(t, err)
		assert.Equal(t, v.Key, hex.EncodeToString(key), v.Vector)
	}
	assert.Greater(t, count, 15)
}

// TestMode reports whether Go refuses an AES-GCM with an IV of the caller, which TestApprovedAlgorithms reads.
func TestMode(t *testing.T) {
	t.Parallel()
	block, err := aes.NewCipher(make([]byte, 32))
	require.NoError(t, err)
	_, err = cipher.NewGCM(block)
	t.Log(err)
}
