// Command machineadm-remote-configuration-provider-shelf fetches the streams of RemoteConfig documents by HTTP.
package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

func main() {
	sdk.Main(sdk.Source{
		Name: "shelf", Version: "1.0.0", OS: []string{"linux"}, Secrets: []string{"spec.providerConfig.token"},
		Validate: validate, Fetch: fetch,
	})
}

// config is spec.providerConfig.
type config struct {
	Token v1alpha1.Secret `json:"token"`
}

// validate returns the errors of a document that show without a connection.
func validate(l sdk.Location) []sdk.Violation {
	_, violations := sdk.ProviderConfig[config](l.ProviderConfig)
	if at, err := url.Parse(l.URI); err != nil || at.Host == "" { // the error quotes the URI
		violations = append(violations, sdk.Violation{Field: l.Field, Message: "is not the URL of an object"})
	}
	return violations
}

// fetch opens the object. The SDK tries again what can pass.
func fetch(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	c, _ := sdk.ProviderConfig[config](l.ProviderConfig) // validate reports the violations
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URI, nil)
	if err != nil {
		return sdk.Object{}, err
	}
	request.Header.Set("Authorization", "Bearer "+string(c.Token.Reveal()))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return sdk.Object{}, err
	}
	switch {
	case answer.StatusCode == http.StatusOK:
		return sdk.Object{Revision: answer.Header.Get("ETag"), Body: answer.Body}, nil
	case answer.StatusCode >= http.StatusInternalServerError:
		err = sdk.Retry(0, "the server answered "+answer.Status)
	default:
		err = sdk.Answered(sdk.Precondition("the server answered "+answer.Status, "check spec.uri and the token"), answer.StatusCode)
	}
	return sdk.Object{}, errors.Join(err, answer.Body.Close())
}
