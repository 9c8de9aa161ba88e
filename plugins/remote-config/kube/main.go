// Command machineadm-remote-configuration-provider-kube fetches the streams of RemoteConfig documents from Secrets of a Kubernetes
// cluster, keeps the reports of runs in its ConfigMaps, and stores streams there.
package main

import (
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source()) }

func source() sdk.Source {
	return sdk.Source{
		Name:     "kube",
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
