// Command machineadm-plugin-encryption-provider-azurekeyvault serves the passphrases of EncryptedConfig documents that a key of Azure Key
// Vault protects.
package main

import (
	"time"

	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(provider(azure.Tokens{
		Resource: "https://vault.azure.net", Metadata: cloud.MetadataServer, SpreadUntil: time.Now().Add(cloud.SpreadTime),
	}))
}

func provider(tokens azure.Tokens) sdk.KeyProvider {
	v := vault{tokens}
	return sdk.KeyProvider{
		Name: "azurekeyvault", Version: version.String(), OS: []string{"linux", "windows"}, Secrets: cloud.Secrets[config](),
		Validate: validate, Passphrase: v.passphrase, NewPassphrase: v.newPassphrase,
	}
}
