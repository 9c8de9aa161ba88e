// Command machineadm-remote-configuration-provider-azblob fetches the streams of RemoteConfig documents from Azure Blob Storage, and
// keeps the reports of runs and other objects there.
package main

import (
	"time"

	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(source(azure.Tokens{
		Resource: "https://storage.azure.com", Metadata: cloud.MetadataServer, SpreadUntil: time.Now().Add(cloud.SpreadTime),
	}))
}

func source(tokens azure.Tokens) sdk.Source {
	s := storage{tokens}
	return sdk.Source{
		Name:     "azblob",
		Version:  version.String(),
		OS:       []string{"linux", "windows"},
		Secrets:  cloud.Secrets[config](),
		Validate: validate,
		Fetch:    s.fetch,
		Report:   s.report,
		Store:    s.store,
		Remove:   s.remove,
		Presigns: true,
	}
}
