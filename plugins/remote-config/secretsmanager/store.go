package main

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

const maxSecretBytes = 64 << 10

// store writes a version of a secret, or makes the secret. The ID of the version is the digest of the object, so that a request that is
// repeated makes no other version.
func store(ctx context.Context, m aws.Machine, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	if len(o.Data) == 0 || len(o.Data) > maxSecretBytes {
		return sdk.Reference{}, sdk.Final(sdk.At(sdk.Precondition(
			fmt.Sprintf("the object has %d bytes, and a secret holds 1 to %d", len(o.Data), maxSecretBytes), "use a storage of another provider"), l.Field))
	}
	c, a, err := access(ctx, m, l)
	if err != nil {
		return sdk.Reference{}, err
	}
	secret := secretOf(l.URI)
	request := map[string]any{"SecretId": secret, "SecretBinary": o.Data, "ClientRequestToken": fmt.Sprintf("%x", sha256.Sum256(o.Data))}
	err = a.Definite().Call(ctx, "secretsmanager", "secretsmanager.PutSecretValue", request, new(struct{}))
	if cloud.IsAbsent(err) {
		delete(request, "SecretId")
		request["Name"] = secret
		err = a.Call(ctx, "secretsmanager", "secretsmanager.CreateSecret", request, new(struct{}))
	}
	if err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	return sdk.Reference{URI: l.URI, ProviderConfig: config{Regional: c.Public(a.Region())}}, nil
}

// remove deletes a secret at once, without the days in which it could be restored. It has no report beside it.
func remove(ctx context.Context, m aws.Machine, l sdk.Location) error {
	_, a, err := access(ctx, m, l)
	if err != nil {
		return err
	}
	request := map[string]any{"SecretId": secretOf(l.URI), "ForceDeleteWithoutRecovery": true}
	err = a.Definite().Call(ctx, "secretsmanager", "secretsmanager.DeleteSecret", request, new(struct{}))
	if cloud.IsAbsent(err) {
		return nil
	}
	return sdk.At(err, l.Field)
}
