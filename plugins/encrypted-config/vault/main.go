// Command machineadm-plugin-encryption-provider-vault serves the passphrases of EncryptedConfig documents that a key of the transit
// engine of HashiCorp Vault or OpenBao protects.
package main

import (
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(provider()) }

func provider() sdk.KeyProvider {
	return sdk.KeyProvider{
		Name: "vault", Version: version.String(), OS: []string{"linux", "windows"}, Secrets: cloud.Secrets[config](),
		Validate: validate, Passphrase: passphrase, NewPassphrase: newPassphrase,
	}
}
