package main

import (
	"bytes"
	"context"
	"io"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	aws.Regional
	VersionID    string `json:"versionId,omitempty"`
	VersionStage string `json:"versionStage,omitempty"`
}

const at = document.Path("spec.providerConfig")

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	secret := secretOf(l.URI)
	all := c.Validate(secret)
	refuse := func(field, message, hint string) {
		all = append(all, sdk.Violation{Field: field, Message: message, Hint: hint})
	}
	if !regexp.MustCompile(`^[a-zA-Z0-9/_+=.@:-]+$`).MatchString(secret) || len(secret) > 2048 {
		refuse(l.Field, "is not the location of a secret", "write it as secretsmanager://NAME or secretsmanager://ARN")
	}
	if l.Access != "" && strings.Contains(secret, ":") {
		refuse(l.Field, "has a colon, which no name of a new secret has", "write it as secretsmanager://PREFIX")
	}
	if l.Access != "" && (c.VersionID != "" || c.VersionStage != "") {
		refuse(string(at), "has versionId or versionStage, which are of one object", "remove them from the storage")
	}
	if c.VersionID != "" && !regexp.MustCompile(`^[a-zA-Z0-9-]{32,64}$`).MatchString(c.VersionID) {
		refuse(string(at.Field("versionId")), "is not the ID of a version", "give the UUID of the version, 32 to 64 characters")
	}
	if c.VersionStage != "" && !regexp.MustCompile(`^[a-zA-Z0-9/_+=.@-]{1,256}$`).MatchString(c.VersionStage) {
		refuse(string(at.Field("versionStage")), "is not the label of a version", "give one such as AWSCURRENT, which is the default")
	}
	return document.Join(decoding, all)
}

func secretOf(uri string) string {
	secret, _ := strings.CutPrefix(uri, "secretsmanager://")
	return map[bool]string{true: secret}[secret != uri]
}

func fetch(ctx context.Context, m aws.Machine, l sdk.Location) (sdk.Object, error) {
	c, a, err := access(ctx, m, l)
	if err != nil {
		return sdk.Object{}, err
	}
	request := struct {
		SecretId     string //nolint:revive // the name of the service
		VersionId    string `json:",omitempty"` //nolint:revive // likewise
		VersionStage string `json:",omitempty"`
	}{secretOf(l.URI), c.VersionID, c.VersionStage}
	var result struct {
		SecretString string
		SecretBinary []byte
		VersionId    string //nolint:revive // likewise
	}
	if err := a.Call(ctx, "secretsmanager", "secretsmanager.GetSecretValue", request, &result); err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	data := append([]byte(result.SecretString), result.SecretBinary...) // a secret has one of the two
	return sdk.Object{Revision: result.VersionId, Body: io.NopCloser(bytes.NewReader(data))}, nil
}

// access returns the settings of a valid location, and its rights.
func access(ctx context.Context, m aws.Machine, l sdk.Location) (config, aws.Access, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validated before
	a, err := m.Access(ctx, c.Config, c.In(secretOf(l.URI)))
	return c, a, sdk.At(err, l.Field)
}
