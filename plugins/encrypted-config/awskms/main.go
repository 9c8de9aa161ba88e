// Command machineadm-plugin-encryption-provider-awskms serves the passphrases of EncryptedConfig documents that a key of AWS KMS has
// encrypted.
package main

import (
	"context"
	"encoding/base64"
	"regexp"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(provider(aws.Here("awskms"))) }

func provider(m aws.Machine) sdk.KeyProvider {
	k := kms{m}
	return sdk.KeyProvider{
		Name: "awskms", Version: version.String(), OS: []string{"linux", "windows"}, Secrets: aws.Secrets(),
		Validate: validate, Passphrase: k.passphrase, NewPassphrase: k.newPassphrase,
	}
}

// config is spec.providerConfig.
type config struct {
	aws.Config
	// EncryptionContext is authenticated together with the passphrase. It is not confidential.
	EncryptionContext map[string]string `json:"encryptionContext,omitempty"`
}

const (
	scheme        = "kms"
	maxCiphertext = 6144 // bytes, of KMS
	bytesOfKey    = 32   // of a new passphrase
)

// validate returns all violations of a passphraseURI and its configuration.
func validate(k sdk.Key) []sdk.Violation {
	_, all := configOf(k)
	u, encrypted, err := parse(k.URI)
	if err != nil || len(encrypted) == 0 || !isKey(u.Location, "key") {
		all = append(all, sdk.Violation{
			Field: "spec.passphraseURI", Message: "is not a passphrase that a key of AWS KMS has encrypted",
			Hint: "write it as kms://BASE64@arn:aws:kms:REGION:ACCOUNT:key/ID, as machineadm encrypt does",
		})
	}
	return all
}

// configOf returns the configuration of a key and its violations.
func configOf(k sdk.Key) (config, []sdk.Violation) {
	c, decoding := sdk.ProviderConfig[config](k.ProviderConfig)
	return c, document.Join(decoding, c.Validate())
}

// parse returns the parts of a passphraseURI.
func parse(uri string) (v1alpha1.PassphraseURI, []byte, error) {
	u, err := v1alpha1.ParsePassphraseURI(uri)
	if err != nil || u.Scheme != scheme || len(u.Encrypted) > base64.StdEncoding.EncodedLen(maxCiphertext) {
		return v1alpha1.PassphraseURI{}, nil, err
	}
	encrypted, err := base64.StdEncoding.Strict().DecodeString(u.Encrypted)
	return u, encrypted, err
}

// isKey reports whether a text is the Amazon Resource Name of a key or, as another resource, of an alias.
func isKey(arn, resource string) bool {
	form := `^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:(` + resource + `)/[a-zA-Z0-9/_-]{1,250}$`
	return aws.RegionOf(arn) != "" && regexp.MustCompile(form).MatchString(arn)
}

// kms calls AWS KMS.
type kms struct{ machine aws.Machine }

// The requests and their results; encoding/json has bytes as base64, as KMS has.
type (
	decrypt struct {
		KeyId             string //nolint:revive // the name of the service
		CiphertextBlob    []byte
		EncryptionContext map[string]string `json:",omitempty"`
	}
	generateDataKey struct {
		KeyId             string //nolint:revive // the name of the service
		NumberOfBytes     int
		EncryptionContext map[string]string `json:",omitempty"`
	}
	result struct {
		KeyId                     string //nolint:revive // the name of the service
		Plaintext, CiphertextBlob []byte
	}
)

func (k kms) call(ctx context.Context, c config, arn, action string, in any) (result, error) {
	var r result
	a, err := k.machine.Access(ctx, c.Config, aws.RegionOf(arn))
	if err != nil {
		return r, err
	}
	if err := a.Call(ctx, "kms", "TrentService."+action, in, &r); err != nil {
		return r, err
	}
	if !isKey(r.KeyId, "key") || len(r.Plaintext) == 0 {
		return r, sdk.Precondition("KMS answers without the key or the passphrase", "check that this is the right endpoint")
	}
	return r, nil
}

// passphrase decrypts the passphrase, by the key that the document names and no other.
func (k kms) passphrase(ctx context.Context, key sdk.Key) (v1alpha1.Secret, error) {
	c, _ := configOf(key)
	u, encrypted, _ := parse(key.URI) // validated before
	r, err := k.call(ctx, c, u.Location, "Decrypt", decrypt{u.Location, encrypted, c.EncryptionContext})
	if err != nil {
		return v1alpha1.Secret{}, sdk.At(err, "spec.passphraseURI")
	}
	return v1alpha1.NewSecret(r.Plaintext), nil
}

// newPassphrase makes a passphrase of random bytes, as KMS makes a data key.
func (k kms) newPassphrase(ctx context.Context, key sdk.Key) (v1alpha1.Secret, string, error) {
	c, all := configOf(key)
	if !isKey(key.URI, "key|alias") {
		all = append(all, sdk.Violation{
			Message: "the key is not the ARN of a key of AWS KMS", Hint: "write arn:aws:kms:REGION:ACCOUNT:key/ID, or alias/NAME at its end",
		})
	}
	if len(all) > 0 {
		return v1alpha1.Secret{}, "", sdk.InvalidConfig(all...)
	}
	r, err := k.call(ctx, c, key.URI, "GenerateDataKey", generateDataKey{key.URI, bytesOfKey, c.EncryptionContext})
	if err != nil {
		return v1alpha1.Secret{}, "", err
	}
	u := v1alpha1.PassphraseURI{Scheme: scheme, Encrypted: base64.StdEncoding.EncodeToString(r.CiphertextBlob), Location: r.KeyId}
	return v1alpha1.NewSecret(r.Plaintext), u.String(), nil
}
