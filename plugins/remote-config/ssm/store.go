package main

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

const maxValueBytes = 8 << 10 // of a parameter of the tier Advanced

// store writes a parameter, encrypted with the key of the account for Systems Manager.
func store(ctx context.Context, m aws.Machine, l sdk.Location, o sdk.NewObject) (sdk.Reference, error) {
	if len(o.Data) == 0 || len(o.Data) > maxValueBytes || !utf8.Valid(o.Data) {
		return sdk.Reference{}, sdk.Final(sdk.At(sdk.Precondition(
			fmt.Sprintf("the object has %d bytes, and a parameter holds 1 to %d of text", len(o.Data), maxValueBytes), "use a storage of another provider"), l.Field))
	}
	c, a, err := access(ctx, m, l)
	if err != nil {
		return sdk.Reference{}, err
	}
	request := map[string]any{
		"Name": nameOf(l.URI), "Value": string(o.Data), "Type": "SecureString", "Overwrite": true, "Tier": "Intelligent-Tiering",
	}
	if err := a.Call(ctx, "ssm", "AmazonSSM.PutParameter", request, new(struct{})); err != nil {
		return sdk.Reference{}, sdk.At(err, l.Field)
	}
	return sdk.Reference{URI: l.URI, ProviderConfig: c.Public(a.Region())}, nil
}

// remove deletes a parameter. It has no report beside it.
func remove(ctx context.Context, m aws.Machine, l sdk.Location) error {
	_, a, err := access(ctx, m, l)
	if err != nil {
		return err
	}
	err = a.Definite().Call(ctx, "ssm", "AmazonSSM.DeleteParameter", map[string]any{"Name": nameOf(l.URI)}, new(struct{}))
	if cloud.IsAbsent(err) {
		return nil
	}
	return sdk.At(err, l.Field)
}
