package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

// TestValidate: names and ARNs of secrets, and their versions. testenv/aws fetches them.
func TestValidate(t *testing.T) {
	t.Parallel()
	check := func(uri, config string) []sdk.Violation {
		return validate(sdk.Location{URI: uri, Field: "spec.uri", ProviderConfig: json.RawMessage(config)})
	}
	for uri, config := range map[string]string{
		"secretsmanager://a": `{}`, "secretsmanager://a/b_+=.@-": `{"region":"eu-x-1","versionStage":"AWSPREVIOUS"}`,
		"secretsmanager://arn:aws:secretsmanager:eu-central-1:111122223333:secret:a-AbCdEf": `{"accessKeyID":"A","secretAccessKey":{"value":"s"},"versionId":"a1b2c3d4-5678-90ab-cdef-1111111111"}`,
	} {
		assert.Empty(t, check(uri, config), uri)
	}
	for _, uri := range []string{"c4n4ry", "secretsmanager://", "secretsmanager://c4n4ry b", "ssm://c4n4ry", "secretsmanager://" + strings.Repeat("c4n4ry", 400)} {
		all := check(uri, `{"versionId":"c4n4ry","versionStage":"c4n4ry c4n4ry","sessionToken":{"value":"c4n4ry"}}`)
		assert.Len(t, all, 4, uri)
		for _, v := range all {
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
	}
	s := source(aws.Machine{Now: time.Now})
	assert.Nil(t, s.Report)
	assert.Len(t, s.Secrets, 2)
}

// FuzzSecret: an accepted location has the characters of a secret's, and is not quoted otherwise.
func FuzzSecret(f *testing.F) {
	f.Add("secretsmanager://a/b")
	f.Add("secretsmanager://arn:aws:secretsmanager:eu-central-1:111122223333:secret:a-AbCdEf")
	f.Fuzz(func(t *testing.T, uri string) {
		all := validate(sdk.Location{URI: uri, Field: "spec.uri"})
		secret := secretOf(uri)
		if len(all) == 0 && (uri != "secretsmanager://"+secret || secret == "" || strings.ContainsAny(secret, " \n\"?#%")) {
			t.Errorf("%q", uri)
		}
	})
}
