// Command machineadm-remote-configuration-provider-gcs fetches the streams of RemoteConfig documents from Google Cloud Storage, and
// keeps the reports of runs and other objects there.
package main

import (
	"time"

	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/google"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(source(google.Service{
		Endpoint: "https://storage.googleapis.com", Scope: "https://www.googleapis.com/auth/devstorage.read_write",
		Metadata: cloud.MetadataServer, SpreadUntil: time.Now().Add(cloud.SpreadTime),
	}))
}

func source(s google.Service) sdk.Source {
	b := storage{s}
	return sdk.Source{
		Name:     "gcs",
		Version:  version.String(),
		OS:       []string{"linux", "windows"},
		Secrets:  cloud.Secrets[config](),
		Validate: validate,
		Fetch:    b.fetch,
		Report:   b.report,
		Store:    b.store,
		Remove:   b.remove,
		Presigns: true,
	}
}
