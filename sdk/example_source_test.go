package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk"
)

// shelfConfig is spec.providerConfig.
type shelfConfig struct {
	Token v1alpha1.Secret `json:"token"`
}

func validateShelf(l sdk.Location) []sdk.Violation {
	_, violations := sdk.ProviderConfig[shelfConfig](l.ProviderConfig)
	if _, err := url.Parse(l.URI); err != nil { // its error quotes the URI
		violations = append(violations, sdk.Violation{Field: l.Field, Message: "is not a URL"})
	}
	return violations
}

func fetchShelf(ctx context.Context, l sdk.Location) (sdk.Object, error) {
	config, _ := sdk.ProviderConfig[shelfConfig](l.ProviderConfig) // validateShelf reports the violations
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, l.URI, nil)
	if err != nil {
		return sdk.Object{}, err
	}
	request.Header.Set("Authorization", "Bearer "+string(config.Token.Reveal()))
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return sdk.Object{}, err // the SDK tries again what can pass
	}
	switch {
	case answer.StatusCode == http.StatusOK:
		return sdk.Object{Revision: answer.Header.Get("ETag"), Body: answer.Body}, nil
	case answer.StatusCode >= http.StatusInternalServerError:
		err = sdk.Retry(0, "the shelf answered "+answer.Status)
	default:
		err = sdk.Answered(sdk.Precondition("the shelf answered "+answer.Status, "check spec.uri and the token"), answer.StatusCode)
	}
	return sdk.Object{}, errors.Join(err, answer.Body.Close())
}

// This is a whole plugin that fetches streams, in the file machineadm-remote-configuration-provider-shelf. Its main is
//
//	func main() { sdk.Main(sdk.Source{...}) }
//
// Here a test calls it instead.
func ExampleSource() {
	source := sdk.Source{
		Name: "shelf", Version: "1.0.0", OS: []string{runtime.GOOS}, Secrets: []string{"spec.providerConfig.token"},
		Validate: validateShelf, Fetch: fetchShelf,
	}

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"1"`)
		fmt.Fprintln(w, "for the bearer of", r.Header.Get("Authorization"))
	}))
	defer server.Close()
	err := sdk.NewSource(source, runtime.GOOS).Fetch(context.Background(), pluginv1.FetchRequest{
		Document: []byte(`{"apiVersion":"machineadm.cluster.x-k8s.io/v1alpha1","kind":"RemoteConfig","metadata":{"name":"x"},
			"spec":{"provider":"shelf","uri":"` + server.URL + `","providerConfig":{"token":{"value":"key"}}}}`),
		Target: sdk.Target{OS: runtime.GOOS}, MaxBytes: 16 << 20,
	}, func(part pluginv1.Chunk) error {
		fmt.Printf("%s%s", part.Revision, part.Data)
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output: "1"for the bearer of Bearer key
}
