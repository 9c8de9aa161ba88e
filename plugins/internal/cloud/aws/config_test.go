package aws

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/sdk"
)

func TestValidate(t *testing.T) {
	t.Parallel()
	keys := `"region":"eu-central-1","accessKeyID":"AKID","secretAccessKey":{"value":"s"}`
	for config, want := range map[string]string{
		`{}`: "", `{"region":"eu-x-1"}`: "", `{` + keys + `}`: "", `{` + keys + `,"sessionToken":{"value":"t="},"endpoint":"https://a.example:9000/"}`: "",
		`{"region":"a.b"}`:      "region",
		`{"region":"eu-west1"}`: "region", `{"region":"EU-West-1"}`: "region", `{"region":"garage","endpoint":"https://a.example"}`: "",
		`{"region":"c4n4ry/"}`: "region",
		`{"accessKeyID":"AKID","secretAccessKey":{"value":"s"}}`:                                                          "region",
		`{"region":"eu-x-1","accessKeyID":"AKID"}`:                                                                        "secretAccessKey",
		`{"region":"eu-x-1","secretAccessKey":{"value":"c4n4ry"}}`:                                                        "accessKeyID",
		`{"sessionToken":{"value":"c4n4ry"}}`:                                                                             "accessKeyID",
		`{"region":"eu-x-1","accessKeyID":"c4n4ry ","secretAccessKey":{"value":"s"}}`:                                     "accessKeyID",
		`{"region":"eu-x-1","accessKeyID":"A","secretAccessKey":{"value":"c4n4ry\n"},"sessionToken":{"value":"c4n4ry "}}`: "secretAccessKey sessionToken",
		`{"endpoint":"http://c4n4ry.example"}`:                                                                            "endpoint",
		`{"endpoint":"https://a.example/c4n4ry"}`:                                                                         "endpoint",
		`{"endpoint":"https://a.example/?c4n4ry"}`:                                                                        "endpoint",
		`{"endpoint":"https://c4n4ry:x@a.example"}`:                                                                       "endpoint",
		`{"ca":"c4n4ry"}`: "ca",
	} {
		c, decoding := sdk.ProviderConfig[Regional](json.RawMessage(config))
		require.Empty(t, decoding, config)
		var fields []string
		for _, v := range c.Validate("name") {
			fields = append(fields, strings.TrimPrefix(v.Field, "spec.providerConfig."))
			assert.NotContains(t, v.Message+v.Hint, "c4n4ry")
		}
		assert.Equal(t, want, strings.Join(fields, " "), config)
	}
	assert.Equal(t, []string{"spec.providerConfig.secretAccessKey", "spec.providerConfig.sessionToken"}, Secrets())
	assert.Equal(t, "eu-west-1", Regional{}.In("arn:aws:ssm:eu-west-1:1:parameter/a"))
	assert.Equal(t, "eu-west-2", Regional{Region: "eu-west-2"}.In("arn:aws:ssm:eu-west-1:1:parameter/a"))
	assert.Empty(t, Regional{}.In("arn:aws:ssm:a.b:1:parameter/a"))
}

// TestDomains compares the domains with awscli's, where it is installed.
func TestDomains(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "amazonaws.com", suffix("us-gov-west-1"))
	assert.Equal(t, "amazonaws.eu", suffix("eusc-de-east-1"))
	data, err := os.ReadFile("/usr/lib/python3/dist-packages/awscli/botocore/data/endpoints.json")
	if err != nil {
		return
	}
	var all struct {
		Partitions []struct {
			DNSSuffix string
			Regions   map[string]any
		}
	}
	require.NoError(t, json.Unmarshal(data, &all))
	for _, p := range all.Partitions {
		for region := range p.Regions {
			assert.Equal(t, p.DNSSuffix, suffix(region), region)
			assert.True(t, isRegion(region) && ofAWS().MatchString(region), region)
		}
	}
}
