package cloud

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/sdk"
)

const (
	// MetadataServer is the metadata service of a virtual machine, by its literal address: a name could resolve to another one.
	MetadataServer = "http://169.254.169.254"
	// SpreadTime is how long rights and objects may take to be known everywhere, after a machine has started.
	SpreadTime = time.Minute

	maxMetadataBytes = 64 << 10
)

// Metadata gets a JSON answer of a metadata service: without a proxy or redirects, and of at most 64 KiB.
func Metadata(ctx context.Context, url string, header map[string]string, into any, spreadUntil time.Time) (http.Header, error) {
	answer, err := Client{Direct: true, SpreadUntil: spreadUntil}.Exchange(ctx, Message{
		Method: http.MethodGet, URL: url, Header: header, Into: into, Most: maxMetadataBytes,
	})
	return answer, aside(err)
}

// aside returns the error of a server that is not the source: its status does not mean that the source has nothing (SPEC P-48).
func aside(err error) error {
	if known, ok := errors.AsType[*pluginv1.Error](err); ok {
		delete(known.Facts, pluginv1.FactStatus)
	}
	return err
}

// Token gets an access token of OAuth 2.0 (RFC 6749, section 4). A refused request is an answer with the status 401, whatever its
// own status: the credentials are no longer valid, or the clock of the machine is wrong.
func Token(ctx context.Context, c Client, to string, form url.Values) (string, error) {
	var access struct {
		Token string `json:"access_token"`
	}
	_, err := c.Exchange(ctx, Message{
		Method: http.MethodPost, URL: to, Header: map[string]string{"Content-Type": "application/x-www-form-urlencoded"},
		Body: []byte(form.Encode()), Into: &access,
	})
	err = aside(err)
	if code := Status(err); code == http.StatusBadRequest || code == http.StatusUnauthorized {
		err = sdk.Answered(sdk.Precondition("the credentials are refused: "+pluginv1.AsError(err).Message,
			"check that they are still valid, and the clock of this machine"), http.StatusUnauthorized)
	}
	return access.Token, err
}
