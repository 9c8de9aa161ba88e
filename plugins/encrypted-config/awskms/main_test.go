package main

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

const (
	arn = "arn:aws:kms:us-west-2:111122223333:key/1234abcd"
	uri = "kms://ZW5jcnlwdGVk@" + arn
)

// TestValidate: the location is as in the proposal. testenv/aws decrypts.
func TestValidate(t *testing.T) {
	t.Parallel()
	check := func(uri, config string) []sdk.Violation {
		return validate(sdk.Key{URI: uri, ProviderConfig: json.RawMessage(config)})
	}
	for uri, config := range map[string]string{
		uri: ``, "kms://YWI/Pj4+@arn:aws-us-gov:kms:us-gov-west-1:111122223333:key/mrk-0987dcba": `{"encryptionContext":{"a":"b"},"accessKeyID":"A","secretAccessKey":{"value":"s"}}`,
	} {
		assert.Empty(t, check(uri, config), uri)
	}
	for _, uri := range []string{
		"c4n4ry", "kms://" + arn, "kms://c4n4ry!@" + arn, "kms://YQ@" + arn, "s3://YQ==@" + arn, "kms://YQ==@c4n4ry", "kms://YQ==@arn:aws:kms:us-west-2:1:key/c4n4ry",
		"kms://YQ==@arn:aws:kms:us-west-2:111122223333:alias/c4n4ry", "kms://YQ==@arn:aws:kms:c4n4ry.example:111122223333:key/a", "kms://YQ==@" + arn + "?c4n4ry",
		"kms://" + base64.StdEncoding.EncodeToString(make([]byte, 6145)) + "@" + arn,
	} {
		all := check(uri, `{"region":"c4n4ry","endpoint":"http://c4n4ry"}`)
		assert.Len(t, all, 3, uri)
		for _, v := range all {
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
	}
}

// TestAnswers: an answer without a passphrase, or of another key's form, is none. Nothing of it is in an error.
func TestAnswers(t *testing.T) {
	t.Parallel()
	long := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("c4n4ry", 3)))
	for answer, want := range map[string]string{
		`{"KeyId":"` + arn + `","Plaintext":"` + long + `"}`:                     "",
		`{"KeyId":"` + arn + `","Plaintext":"YzRuNHJ5"}`:                         "fewer than 14 bytes",
		`{"KeyId":"` + arn + `"}`:                                                "without the key or the passphrase",
		`{"KeyId":"c4n4ry@","Plaintext":"` + long + `","CiphertextBlob":"YQ=="}`: "without the key or the passphrase",
		`{"KeyId":"` + arn + `","Plaintext":"c4n4ry!"}`:                          "something else than the result of TrentService.Decrypt",
		`c4n4ry`: "something else than the result of TrentService.Decrypt",
	} {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) }))
		t.Cleanup(s.Close)
		ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
		doc, err := json.Marshal(map[string]any{
			"apiVersion": "machineadm.cluster.x-k8s.io/v1alpha1", "kind": "EncryptedConfig", "metadata": map[string]any{"name": "a"},
			"spec": map[string]any{"provider": "awskms", "passphraseURI": uri, "providerConfig": map[string]any{
				"endpoint": s.URL, "ca": ca, "accessKeyID": "A", "secretAccessKey": map[string]any{"value": "s"},
			}},
		})
		require.NoError(t, err)
		p := sdk.NewKeyProvider(provider(aws.Machine{Now: time.Now}), runtime.GOOS)
		got, err := p.Passphrase(t.Context(), pluginv1.PassphraseRequest{Document: doc, Target: target.Target{OS: runtime.GOOS}})
		if want == "" {
			require.NoError(t, err)
			assert.Equal(t, strings.Repeat("c4n4ry", 3), string(got))
			continue
		}
		e := pluginv1.AsError(err)
		assert.Equal(t, pluginv1.CodePrecondition, e.Code)
		assert.Contains(t, e.Message, want)
		assert.NotContains(t, fmt.Sprintf("%+v", *e), "c4n4ry")
	}
	_, err := sdk.NewKeyProvider(provider(aws.Machine{Now: time.Now}), runtime.GOOS).NewPassphrase(t.Context(), pluginv1.NewPassphraseRequest{
		Key: "c4n4ry", Target: target.Target{OS: runtime.GOOS}, ProviderConfig: []byte(`{"endpoint":"http://c4n4ry"}`),
	})
	e := pluginv1.AsError(err)
	assert.Equal(t, pluginv1.CodeInvalidConfig, e.Code)
	assert.Len(t, e.Violations, 2)
	assert.NotContains(t, fmt.Sprintf("%+v", *e), "c4n4ry")
}

// FuzzParse: an accepted location is written in one way, and its region can be a part of a host.
func FuzzParse(f *testing.F) {
	f.Add(uri)
	f.Add("kms://a@b@c")
	f.Fuzz(func(t *testing.T, text string) {
		if len(validate(sdk.Key{URI: text})) > 0 {
			return
		}
		u, encrypted, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, text, "kms://"+base64.StdEncoding.EncodeToString(encrypted)+"@"+u.Location)
		require.Regexp(t, `^[a-z0-9-]+$`, aws.RegionOf(u.Location))
	})
}
