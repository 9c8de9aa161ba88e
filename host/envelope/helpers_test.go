package envelope

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const (
	uri    = "kms://ZW5j@arn:aws:kms:us-west-2:111122223333:key/1234abcd"
	stream = "kind: Sysctl\n"
)

// passphrase is a function, so that no test can change it for others.
func passphrase() []byte { return []byte("\x00\xff passphrase of these tests\r\n\x01") }

// sealed returns a document as of Seal, changed by change before it is encrypted and with the fewest iterations.
func sealed(t testing.TB, plain string, change ...func(*v1alpha1.EncryptedConfig)) v1alpha1.EncryptedConfig {
	t.Helper()
	doc := v1alpha1.EncryptedConfig{
		Header: v1alpha1.Header{
			APIVersion: v1alpha1.APIVersion, Kind: v1alpha1.KindEncryptedConfig, Metadata: v1alpha1.Metadata{Name: "site"},
		},
		Spec: v1alpha1.EncryptedConfigSpec{
			Provider: "awskms", PassphraseURI: uri, Salt: encode("0123456789abcdef"), Iterations: "50000",
			CipherAlgorithm: cipherAlgorithm, DigestAlgorithm: digestAlgorithm, KeyDerivationAlgorithm: keyDerivationAlgorithm,
		},
	}
	for _, c := range change {
		c(&doc)
	}
	doc, err := seal(doc, passphrase(), []byte(plain))
	require.NoError(t, err)
	return doc
}

// open decrypts with an Opener of its own.
func open(t testing.TB, doc v1alpha1.EncryptedConfig, passphrase []byte) ([]byte, error) {
	t.Helper()
	return NewOpener().Open(t.Context(), doc, passphrase)
}

func encode(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func decode(t testing.TB, s string) []byte {
	t.Helper()
	data, err := base64.StdEncoding.Strict().DecodeString(s)
	require.NoError(t, err)
	return data
}

// said returns the code of an error, and its fields in their order.
func said(t testing.TB, err error) (pluginv1.Code, []string) {
	t.Helper()
	var e *pluginv1.Error
	require.True(t, errors.As(err, &e), "%v", err)
	var fields []string
	for _, v := range e.Violations {
		require.NotEmpty(t, v.Message)
		fields = append(fields, strings.TrimPrefix(v.Field, "spec."))
	}
	return e.Code, fields
}
