// Command machineadm-remote-configuration-provider-s3 fetches the streams of RemoteConfig documents from Amazon S3 and from object
// stores with its protocol, and keeps the reports of runs and other objects there.
package main

import (
	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source(aws.Here("s3"))) }

func source(m aws.Machine) sdk.Source {
	s := store{m}
	return sdk.Source{
		Name:     "s3",
		Version:  version.String(),
		OS:       []string{"linux", "windows"},
		Secrets:  aws.Secrets(),
		Validate: validate,
		Fetch:    s.fetch,
		Report:   s.report,
		Store:    s.store,
		Remove:   s.remove,
		Presigns: true,
	}
}
