// Command machineadm-remote-configuration-provider-ssm fetches the streams of RemoteConfig documents from the parameter store of AWS
// Systems Manager, and stores streams there.
package main

import (
	"context"

	"github.com/machineadm/machineadm/internal/version"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

func main() { sdk.Main(source(aws.Here("ssm"))) }

func source(m aws.Machine) sdk.Source {
	return sdk.Source{
		Name: "ssm", Version: version.String(), OS: []string{"linux", "windows"}, Secrets: aws.Secrets(), Validate: validate,
		Fetch: func(ctx context.Context, l sdk.Location) (sdk.Object, error) { return fetch(ctx, m, l) },
		Store: func(ctx context.Context, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
			return store(ctx, m, l, o)
		},
		Remove: func(ctx context.Context, l sdk.Location) error { return remove(ctx, m, l) },
	}
}
