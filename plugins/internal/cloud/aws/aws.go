// Package aws sends the signed requests of the plugins for AWS and for object stores with the protocol of S3. The credentials are
// from the document or the EC2 instance's role, and never from the environment.
package aws

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

const maxResult = 1 << 20 // of a call: a secret has at most 64 KiB

// Access is the right to use the services of a region.
type Access struct {
	config  Config
	region  string
	keys    credentials
	machine Machine
}

// Access returns the rights of the document or, if it has none, of the instance's role. An empty region is the instance's.
func (m Machine) Access(ctx context.Context, c Config, region string) (Access, error) {
	keys, err := credentials{id: c.AccessKeyID, secret: c.SecretAccessKey, token: c.SessionToken}, error(nil)
	if c.AccessKeyID == "" {
		if keys, region, err = m.role(ctx, region); err == nil {
			err = m.checkEndpoint(c.Endpoint, region)
		}
	}
	return Access{config: c, region: region, keys: keys, machine: m}, err
}

// Definite returns the same rights for requests whose 403 and 404 are never a Retry.
func (a Access) Definite() Access {
	a.machine.Started = time.Time{}
	return a
}

// Region returns the region of the services.
func (a Access) Region() string { return a.region }

// Presign returns the URL of an object of S3 with a signature for a method, and when it stops to be valid: after the given time, or with
// the session of the credentials. The path of u is not escaped yet. The URL is a credential.
func (a Access) Presign(method string, u *url.URL, valid time.Duration) (signed string, expires time.Time) {
	now := a.machine.Now()
	at := *u
	a.keys.presign(method, &at, a.region, now, valid)
	if expires = now.Add(valid); !a.keys.expires.IsZero() && a.keys.expires.Before(expires) {
		expires = a.keys.expires
	}
	return at.String(), expires
}

// URL returns the URL of a service in the region, with an empty path.
func (a Access) URL(service string) *url.URL {
	if u, err := url.Parse(a.config.Endpoint); err == nil && u.Host != "" {
		return &url.URL{Scheme: u.Scheme, Host: u.Host}
	}
	return &url.URL{Scheme: "https", Host: service + "." + a.region + "." + suffix(a.region)}
}

// Send signs and sends a request, and returns its answer if that is a success. The path of u is not escaped yet. Redirects are
// not followed: a signature is for one host.
func (a Access) Send(
	ctx context.Context, service, method string, u *url.URL, header map[string]string, body []byte,
) (*http.Response, error) {
	at := *u
	at.RawPath = cloud.Escaped(at.Path)
	r, err := http.NewRequestWithContext(ctx, method, at.String(), bytes.NewReader(body))
	if err != nil {
		return nil, sdk.Precondition("the location is not one of a request", "check spec.uri") // not err, which quotes it
	}
	for name, value := range header {
		r.Header.Set(name, value)
	}
	a.keys.sign(r, body, a.region, service, a.machine.Now())
	return cloud.Client{
		TLS: cloud.TLS{CA: a.config.CA}, SpreadUntil: a.machine.Started.Add(spreading), Explain: explain(a.machine.Now),
	}.Do(r)
}

// Call calls an action of a service with the protocol json 1.1 of AWS, such as AmazonSSM.GetParameter.
func (a Access) Call(ctx context.Context, service, action string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	u := a.URL(service)
	u.Path = "/"
	header := map[string]string{"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": action}
	answer, err := a.Send(ctx, service, http.MethodPost, u, header, body) //nolint:bodyclose // read closes it
	if err != nil {
		return err
	}
	data, err := read(answer, maxResult)
	if err != nil {
		return err
	}
	if json.Unmarshal(data, out) != nil { // whose error can quote the result
		return sdk.Precondition(u.Hostname()+" answers with something else than the result of "+action, "check that this is the right endpoint")
	}
	return nil
}
