// Package google sends requests to services of Google Cloud, with the access token of a service account.
package google

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// Config is the part of a providerConfig that names the service, and the account that asks it.
type Config struct {
	cloud.TLS
	// Endpoint is https://HOST[:PORT] in the place of Google's, such as one of Private Service Connect.
	Endpoint string `json:"endpoint,omitempty"`
	// ServiceAccountKey is the key file of a service account, as JSON. Nil: the service account of the virtual machine.
	ServiceAccountKey *v1alpha1.Secret `json:"serviceAccountKey,omitempty"`
}

// Service is a service.
type Service struct {
	Endpoint string // https://HOST, unless a Config has another
	Scope    string // of the token: https://www.googleapis.com/auth/...
	Metadata string // cloud.MetadataServer, but in tests
	// SpreadUntil is the time until which 403 and 404 are a Retry.
	SpreadUntil time.Time
}

// account is the key file of a service account.
type account struct {
	Type     string `json:"type"`
	Email    string `json:"client_email"`
	KeyID    string `json:"private_key_id"`
	Key      string `json:"private_key"`
	TokenURI string `json:"token_uri"`

	private *rsa.PrivateKey
}

// Violations returns all violations of the fields.
func (c Config) Violations() cloud.Violations {
	all := cloud.Violations(c.Validate(cloud.Config))
	if c.Endpoint != "" {
		all.Server(cloud.Config.Field("endpoint"), c.Endpoint)
		// A document from the network could otherwise have the token of the machine sent anywhere.
		u, err := url.Parse(c.Endpoint)
		isGoogle := false
		if err == nil {
			_, isGoogle = cloud.Domain(u, "googleapis.com")
		}
		if c.ServiceAccountKey == nil && !isGoogle {
			all.Add(cloud.Config.Field("endpoint"), "is not of googleapis.com, and would get the token of the machine", "give serviceAccountKey")
		}
	}
	if c.ServiceAccountKey != nil {
		if _, err := parseAccount(*c.ServiceAccountKey); err != nil {
			all.Add(cloud.Config.Field("serviceAccountKey"), err.Error(), "give the whole key file in JSON of a service account, as {value: ...}")
		}
	}
	return all
}

// parseAccount reads a key file. Its errors quote nothing of it.
func parseAccount(file v1alpha1.Secret) (account, error) {
	var a account
	if json.Unmarshal(file.Reveal(), &a) != nil || a.Type != "service_account" || a.Email == "" {
		return a, errors.New("is not the key file of a service account")
	}
	if _, violations := cloud.ParseURL("", a.TokenURI, false, true); len(violations) > 0 {
		return a, errors.New("has no token_uri of https")
	}
	block, _ := pem.Decode([]byte(a.Key))
	if block == nil {
		return a, errors.New("has no private_key as PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := key.(*rsa.PrivateKey)
	if err != nil || !ok {
		return a, errors.New("has a private_key that is not one of RSA in PKCS 8")
	}
	a.private = private
	return a, nil
}

// Open sends a message, whose URL is a path of the service, with an access token. The caller closes the body of the answer.
func (s Service) Open(ctx context.Context, c Config, m cloud.Message) (*http.Response, error) {
	token, err := s.token(ctx, c)
	if err != nil {
		return nil, err
	}
	return s.client(c).Open(ctx, s.authorized(c, m, token))
}

// Exchange is Open for an answer in JSON.
func (s Service) Exchange(ctx context.Context, c Config, m cloud.Message) error {
	token, err := s.token(ctx, c)
	if err != nil {
		return err
	}
	_, err = s.client(c).Exchange(ctx, s.authorized(c, m, token))
	return err
}

func (s Service) client(c Config) cloud.Client {
	return cloud.Client{TLS: c.TLS, SpreadUntil: s.SpreadUntil}
}

func (s Service) authorized(c Config, m cloud.Message, token string) cloud.Message {
	header := map[string]string{"Authorization": "Bearer " + token}
	for name, value := range m.Header {
		header[name] = value
	}
	m.URL, m.Header = cmp.Or(c.Endpoint, s.Endpoint)+m.URL, header
	return m
}

// token returns an access token: of the service account of the document (RFC 7523), or of the virtual machine.
func (s Service) token(ctx context.Context, c Config) (string, error) {
	if c.ServiceAccountKey == nil {
		return s.tokenOfMachine(ctx)
	}
	a, err := parseAccount(*c.ServiceAccountKey)
	if err != nil {
		return "", err // validated before
	}
	assertion, err := a.assertion(s.Scope, time.Now())
	if err != nil {
		return "", err
	}
	form := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	return cloud.Token(ctx, cloud.Client{TLS: c.TLS}, a.TokenURI, form)
}

// tokenOfMachine asks the metadata server, and requires the header by which it is recognized.
func (s Service) tokenOfMachine(ctx context.Context) (string, error) {
	const flavor = "Metadata-Flavor"
	var access struct {
		Token string `json:"access_token"`
	}
	header, err := cloud.Metadata(ctx, s.Metadata+"/computeMetadata/v1/instance/service-accounts/default/token",
		map[string]string{flavor: "Google"}, &access, s.SpreadUntil)
	if err == nil && header.Get(flavor) != "Google" {
		return "", sdk.Precondition("the metadata service of this machine is not that of Google Cloud", "give spec.providerConfig.serviceAccountKey")
	}
	return access.Token, err
}

// assertion is a JSON Web Token, signed by RS256, with which the account asks for a token.
func (a account) assertion(scope string, now time.Time) (string, error) {
	now = now.Add(-10 * time.Second) // clocks differ
	part := func(claims map[string]any) string { return base64.RawURLEncoding.EncodeToString(cloud.JSON(claims)) }
	text := part(map[string]any{"alg": "RS256", "typ": "JWT", "kid": a.KeyID}) + "." + part(map[string]any{
		"iss": a.Email, "scope": scope, "aud": a.TokenURI, "iat": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
	})
	digest := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.private, crypto.SHA256, digest[:])
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), err
}
