// Command machineadm-plugin-encryption-provider-keyfile reads the passphrases of EncryptedConfig documents from files.
package main

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.KeyProvider{
		Name: "keyfile", Version: "1.0.0", OS: []string{"linux"}, Validate: validate, Passphrase: passphrase,
	})
}

// validate returns the errors of a document that show without looking for the passphrase.
func validate(k sdk.Key) []sdk.Violation {
	_, violations := sdk.ProviderConfig[struct{}](k.ProviderConfig)
	if !filepath.IsAbs(k.URI) {
		violations = append(violations, sdk.Violation{Field: "spec.passphraseURI", Message: "is not an absolute path"})
	}
	return violations
}

// passphrase returns the bytes that are kept, without a change.
func passphrase(_ context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	data, err := os.ReadFile(k.URI)
	if errors.Is(err, fs.ErrNotExist) {
		return v1alpha1.Secret{}, sdk.Answered(sdk.Precondition("there is no such file", "correct the path, or create it"), http.StatusNotFound)
	}
	return v1alpha1.NewSecret(data), err
}
