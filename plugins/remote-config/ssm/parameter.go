package main

import (
	"context"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/plugins/internal/cloud/aws"
	"github.com/machineadm/machineadm/sdk"
)

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[aws.Regional](l.ProviderConfig)
	name := nameOf(l.URI)
	all := c.Validate(name)
	if !isName(name) {
		all = append(all, sdk.Violation{
			Field: l.Field, Message: "is not the location of a parameter",
			Hint: "write it as ssm://NAME, ssm:///PATH/NAME or ssm://ARN, each with :VERSION or :LABEL if it is to be that one",
		})
	}
	if l.Access != "" && strings.Contains(name, ":") {
		all = append(all, sdk.Violation{Field: l.Field, Message: "has a colon, so that the name would be a version", Hint: "write it as ssm:///PATH/"})
	}
	return document.Join(decoding, all)
}

func nameOf(uri string) string {
	name, _ := strings.CutPrefix(uri, "ssm://")
	return map[bool]string{true: name}[name != uri]
}

// isName reports whether a name has the form of a parameter's: an ARN, a path or a flat name, each with a version or a label.
func isName(name string) bool {
	return len(name) <= 2048 && regexp.MustCompile(
		`^(arn:[a-z-]+:ssm:[a-z0-9-]+:[0-9]{12}:parameter/[a-zA-Z0-9_./-]+|(/[a-zA-Z0-9_.-]+)+|[a-zA-Z0-9_.-]+)(:[a-zA-Z0-9_.-]+)?$`).MatchString(name)
}

func fetch(ctx context.Context, m aws.Machine, l sdk.Location) (sdk.Object, error) {
	_, a, err := access(ctx, m, l)
	if err != nil {
		return sdk.Object{}, err
	}
	var result struct {
		Parameter struct {
			Value   string
			Version int64
		}
	}
	request := map[string]any{"Name": nameOf(l.URI), "WithDecryption": true}
	if err := a.Call(ctx, "ssm", "AmazonSSM.GetParameter", request, &result); err != nil {
		return sdk.Object{}, sdk.At(err, l.Field)
	}
	body := io.NopCloser(strings.NewReader(result.Parameter.Value))
	return sdk.Object{Revision: strconv.FormatInt(result.Parameter.Version, 10), Body: body}, nil
}

// access returns the settings of a valid location, and its rights.
func access(ctx context.Context, m aws.Machine, l sdk.Location) (aws.Regional, aws.Access, error) {
	c, _ := sdk.ProviderConfig[aws.Regional](l.ProviderConfig) // validated before
	a, err := m.Access(ctx, c.Config, c.In(nameOf(l.URI)))
	return c, a, sdk.At(err, l.Field)
}
