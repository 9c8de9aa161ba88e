// Command machineadm-remote-configuration-provider-http fetches the streams of RemoteConfig documents from web servers, sends the reports of runs to
// them, and stores objects there.
package main

import (
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source()) }

func source() sdk.Source {
	return sdk.Source{
		Name:     "http",
		Version:  version.String(),
		OS:       []string{"linux", "windows"},
		Secrets:  cloud.Secrets[config](),
		Validate: validate,
		Fetch:    fetch,
		Report:   report,
		Store:    store,
		Remove:   remove,
	}
}
