// Command machineadm-plugin-encryption-provider-gcpkms serves the passphrases of EncryptedConfig documents that a key of Google Cloud's
// Key Management Service protects.
package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"regexp"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(provider(google.Service{
		Endpoint: "https://cloudkms.googleapis.com", Scope: "https://www.googleapis.com/auth/cloudkms",
		Metadata: cloud.MetadataServer, SpreadUntil: time.Now().Add(cloud.SpreadTime),
	}))
}

func provider(s google.Service) sdk.KeyProvider {
	k := kms{s}
	return sdk.KeyProvider{
		Name: "gcpkms", Version: version.String(), OS: []string{"linux", "windows"}, Secrets: cloud.Secrets[google.Config](),
		Validate: validate, Passphrase: k.passphrase, NewPassphrase: k.newPassphrase,
	}
}

// kms is the service.
type kms struct{ google.Service }

const (
	field = document.Path("spec.passphraseURI")
	// name is the name of a key, in Google's form.
	name = `^projects/[a-z0-9][a-z0-9:.-]*/locations/[a-z0-9-]+/keyRings/[A-Za-z0-9_-]{1,63}/cryptoKeys/[A-Za-z0-9_-]{1,63}$`
	// passphraseBytes is the size of a new passphrase.
	passphraseBytes = 32
)

// validate returns all violations of a key.
func validate(k sdk.Key) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[google.Config](k.ProviderConfig)
	all := c.Violations()
	if _, _, ok := parse(k.URI); !ok {
		all.Add(field, "is not gcpkms://CIPHERTEXT@projects/P/locations/L/keyRings/R/cryptoKeys/K", "CIPHERTEXT is base64 with padding")
	}
	return document.Join(decoding, all)
}

// parse splits a passphraseURI.
func parse(uri string) (encrypted []byte, key string, ok bool) {
	u, err := v1alpha1.ParsePassphraseURI(uri)
	if err != nil || u.Scheme != "gcpkms" || u.Encrypted == "" || !regexp.MustCompile(name).MatchString(u.Location) {
		return nil, "", false
	}
	encrypted, err = base64.StdEncoding.Strict().DecodeString(u.Encrypted)
	return encrypted, u.Location, err == nil
}

// passphrase decrypts the ciphertext of the URI.
func (s kms) passphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	c, _ := sdk.ProviderConfig[google.Config](k.ProviderConfig) // validated before
	encrypted, key, _ := parse(k.URI)
	var answer struct {
		Plaintext []byte `json:"plaintext"`
	}
	err := s.Exchange(ctx, c, cloud.Message{
		Method: http.MethodPost, URL: "/v1/" + key + ":decrypt", Body: cloud.JSON(map[string][]byte{"ciphertext": encrypted}), Into: &answer,
	})
	return v1alpha1.NewSecret(answer.Plaintext), sdk.At(err, string(field))
}

// newPassphrase encrypts random bytes.
func (s kms) newPassphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, string, error) {
	c, decoding := sdk.ProviderConfig[google.Config](k.ProviderConfig)
	all := c.Violations()
	if !regexp.MustCompile(name).MatchString(k.URI) {
		all.Add("", "the key is not projects/P/locations/L/keyRings/R/cryptoKeys/K", "gcloud kms keys list prints it")
	}
	if joined := document.Join(decoding, all); len(joined) > 0 {
		return v1alpha1.Secret{}, "", sdk.InvalidConfig(joined...)
	}
	fresh := make([]byte, passphraseBytes)
	_, _ = rand.Read(fresh)     // never fails
	s.SpreadUntil = time.Time{} // for the user who encrypts, a wrong name is an error at once
	var answer struct {
		Ciphertext []byte `json:"ciphertext"`
	}
	err := s.Exchange(ctx, c, cloud.Message{
		Method: http.MethodPost, URL: "/v1/" + k.URI + ":encrypt", Body: cloud.JSON(map[string][]byte{"plaintext": fresh}), Into: &answer,
	})
	uri := v1alpha1.PassphraseURI{Scheme: "gcpkms", Encrypted: base64.StdEncoding.EncodeToString(answer.Ciphertext), Location: k.URI}
	return v1alpha1.NewSecret(fresh), uri.String(), err
}
