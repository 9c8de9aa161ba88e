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

// TestValidate: names, paths and ARNs of parameters, each with a version or a label. testenv/aws fetches them.
func TestValidate(t *testing.T) {
	t.Parallel()
	for uri, config := range map[string]string{
		"ssm://flat": `{}`, "ssm:///a/b-c_d.e": `{"region":"eu-x-1"}`, "ssm://flat:3": ``, "ssm:///a/b:label": ``,
		"ssm://arn:aws-cn:ssm:cn-north-1:111122223333:parameter/a/b:1": `{"accessKeyID":"A","secretAccessKey":{"value":"s"}}`,
	} {
		assert.Empty(t, validate(sdk.Location{URI: uri, Field: "spec.uri", ProviderConfig: json.RawMessage(config)}), uri)
	}
	for _, uri := range []string{
		"c4n4ry", "ssm://", "ssm:///", "ssm://c4n4ry/b", "ssm:///c4n4ry b", "s3://c4n4ry", "ssm://c4n4ry@b", "ssm:///c4n4ry?x",
		"ssm://arn:aws:ssm:eu-central-1:1:parameter/c4n4ry", "ssm://" + strings.Repeat("c4n4ry", 400),
	} {
		all := validate(sdk.Location{URI: uri, Field: "spec.uri", ProviderConfig: json.RawMessage(`{"tokn":1}`)})
		assert.Len(t, all, 2, uri)
		for _, v := range all {
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
	}
	s := source(aws.Machine{Now: time.Now})
	assert.Nil(t, s.Report)
	assert.Len(t, s.Secrets, 2)
}

// FuzzName: an accepted name has the characters of a parameter's.
func FuzzName(f *testing.F) {
	f.Add("ssm:///a/b:1")
	f.Add("ssm://arn:aws:ssm:eu-central-1:111122223333:parameter/a")
	f.Fuzz(func(t *testing.T, uri string) {
		name := nameOf(uri)
		if isName(name) && (uri != "ssm://"+name || strings.ContainsAny(name, " \n\"@?#%")) {
			t.Errorf("%q", uri)
		}
	})
}
