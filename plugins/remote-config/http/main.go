// Command machineadm-remote-configuration-provider-http fetches the streams of RemoteConfig documents from web servers, and sends the
// reports of runs to them.
package main

import (
	"reflect"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source()) }

func source() sdk.Source {
	return sdk.Source{
		Name:     "http",
		Version:  version.String(),
		OS:       []string{"linux", "windows"},
		Secrets:  secrets(),
		Validate: validate,
		Fetch:    fetch,
		Report:   report,
	}
}

func secrets() []string {
	all := document.SecretFields(reflect.TypeFor[config]())
	for i := range all {
		all[i] = string(at) + "." + all[i]
	}
	return all
}
