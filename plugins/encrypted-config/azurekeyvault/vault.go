package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/plugins/internal/cloud/azure"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	cloud.TLS
	azure.Identity
}

// vault is the service.
type vault struct{ azure.Tokens }

// key is a key of a vault. The version is empty for the newest one.
type key struct {
	server        *url.URL
	name, version string
}

const (
	field     = document.Path("spec.passphraseURI")
	algorithm = "RSA-OAEP-256"
	query     = "?api-version=7.4"
	// passphraseBytes is the size of a new passphrase.
	passphraseBytes = 32
)

// wrapped is a request to wrap or unwrap a key, and its answer. The value is base64 for URLs, without padding.
type wrapped struct {
	Algorithm string `json:"alg,omitempty"`
	KeyID     string `json:"kid,omitempty"`
	Value     string `json:"value"`
}

// parse splits azurekeyvault://CIPHERTEXT@HOST/keys/NAME/VERSION.
func parse(uri string) (encrypted string, k key, ok bool) {
	u, err := v1alpha1.ParsePassphraseURI(uri)
	if err != nil || u.Scheme != "azurekeyvault" || u.Encrypted == "" {
		return "", key{}, false
	}
	_, err = base64.RawURLEncoding.Strict().DecodeString(u.Encrypted)
	k, ok = parseKey(u.Location)
	return u.Encrypted, k, ok && err == nil && k.version != ""
}

// parseKey splits HOST/keys/NAME[/VERSION].
func parseKey(location string) (key, bool) {
	host, path, _ := strings.Cut(location, "/")
	server, ok := cloud.ParseServer(host)
	parts := regexp.MustCompile(`^keys/([A-Za-z0-9-]{1,127})(?:/([0-9a-f]{32}))?$`).FindStringSubmatch(path)
	if !ok || parts == nil {
		return key{}, false
	}
	return key{server, parts[1], parts[2]}, true
}

// String returns the key as parseKey reads it.
func (k key) String() string {
	return strings.TrimSuffix(k.server.Host+"/keys/"+k.name+"/"+k.version, "/")
}

// validate returns all violations of a key.
func validate(k sdk.Key) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](k.ProviderConfig)
	_, at, ok := parse(k.URI)
	all := c.violations(field, at)
	if !ok {
		all.Add(field, "is not azurekeyvault://CIPHERTEXT@VAULT.vault.azure.net/keys/NAME/VERSION", "CIPHERTEXT is base64 for URLs, without padding")
	}
	return document.Join(decoding, all)
}

func (c config) violations(at document.Path, k key) cloud.Violations {
	all := append(cloud.Violations(c.Validate(cloud.Config)), c.Violations()...)
	if k.server != nil && c.ClientSecret == nil {
		if _, ok := cloud.Domain(k.server, "vault.azure.net"); !ok {
			all.Add(at, "is not at Azure, and would get the token of the machine", "give clientSecret in spec.providerConfig")
		}
	}
	return all
}

// passphrase unwraps the ciphertext of the URI.
func (v vault) passphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	encrypted, at, _ := parse(k.URI) // validated before
	plain, err := v.ask(ctx, k, at, "unwrapkey", encrypted)
	if err != nil {
		return v1alpha1.Secret{}, sdk.At(err, string(field))
	}
	data, err := base64.RawURLEncoding.DecodeString(plain.Value)
	if err != nil {
		return v1alpha1.Secret{}, sdk.At(sdk.Precondition(at.server.Host+" returns a value that is not base64 for URLs", "check that this is a key vault"), string(field))
	}
	return v1alpha1.NewSecret(data), nil
}

// newPassphrase wraps random bytes, and names the version of the key that did.
func (v vault) newPassphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, string, error) {
	c, decoding := sdk.ProviderConfig[config](k.ProviderConfig)
	at, ok := parseKey(k.URI)
	all := c.violations("", at)
	if !ok {
		all.Add("", "the key is not VAULT.vault.azure.net/keys/NAME", "a version may follow; the newest is used otherwise")
	}
	if joined := document.Join(decoding, all); len(joined) > 0 {
		return v1alpha1.Secret{}, "", sdk.InvalidConfig(joined...)
	}
	fresh := make([]byte, passphraseBytes)
	_, _ = rand.Read(fresh)     // never fails
	v.SpreadUntil = time.Time{} // for the user who encrypts, a wrong name is an error at once
	made, err := v.ask(ctx, k, at, "wrapkey", base64.RawURLEncoding.EncodeToString(fresh))
	if err != nil {
		return v1alpha1.Secret{}, "", err
	}
	uri := v1alpha1.PassphraseURI{Scheme: "azurekeyvault", Encrypted: made.Value, Location: strings.TrimPrefix(made.KeyID, "https://")}.String()
	if _, used, ok := parse(uri); !ok || used.name != at.name || !strings.EqualFold(used.server.Host, at.server.Host) {
		return v1alpha1.Secret{}, "", sdk.Precondition(at.server.Host+" returns another key than the one that was named", "check that this is a key vault")
	}
	return v1alpha1.NewSecret(fresh), uri, nil
}

func (v vault) ask(ctx context.Context, k sdk.Key, at key, operation, value string) (wrapped, error) {
	c, _ := sdk.ProviderConfig[config](k.ProviderConfig) // validated before
	token, err := v.Token(ctx, c.Identity, cloud.Client{TLS: c.TLS})
	if err != nil {
		return wrapped{}, err
	}
	var answer wrapped
	_, err = cloud.Client{TLS: c.TLS, SpreadUntil: v.SpreadUntil}.Exchange(ctx, cloud.Message{
		Method: http.MethodPost, URL: "https://" + at.String() + "/" + operation + query, Header: map[string]string{"Authorization": "Bearer " + token},
		Body: cloud.JSON(wrapped{Algorithm: algorithm, Value: value}), Into: &answer,
	})
	return answer, err
}
