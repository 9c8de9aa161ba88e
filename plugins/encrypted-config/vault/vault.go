package main

import (
	"context"
	"net/http"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// passphraseBits is the size of a new passphrase.
const passphraseBits = 256

// answer is an answer of the API. encoding/json decodes the base64 of the plain text.
type answer struct {
	Data struct {
		Plaintext  []byte `json:"plaintext"`
		Ciphertext string `json:"ciphertext"`
	} `json:"data"`
	Auth struct {
		Token string `json:"client_token"`
	} `json:"auth"`
}

// passphrase decrypts the ciphertext of the URI.
func passphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, error) {
	encrypted, at, _ := parse(k.URI) // validated before
	a, err := ask(ctx, k, at, "/decrypt/", map[string]any{"ciphertext": encrypted})
	return v1alpha1.NewSecret(a.Data.Plaintext), sdk.At(err, string(field))
}

// newPassphrase lets Vault make a data key. Unlike encrypting, that does not make the key if there is none.
func newPassphrase(ctx context.Context, k sdk.Key) (v1alpha1.Secret, string, error) {
	c, decoding := sdk.ProviderConfig[config](k.ProviderConfig)
	at, ok := parseKey(k.URI)
	all := c.violations()
	if !ok {
		all.Add("", "the key is not HOST:PORT/MOUNT/KEY", "such as vault.example.com:8200/transit/machines")
	}
	if all = document.Join(decoding, all); len(all) > 0 {
		return v1alpha1.Secret{}, "", sdk.InvalidConfig(all...)
	}
	a, err := ask(ctx, k, at, "/datakey/plaintext/", map[string]any{"bits": passphraseBits})
	if err != nil {
		return v1alpha1.Secret{}, "", err
	}
	uri := v1alpha1.PassphraseURI{Scheme: "vault", Encrypted: a.Data.Ciphertext, Location: at.String()}.String()
	if _, _, ok := parse(uri); !ok {
		return v1alpha1.Secret{}, "", sdk.Precondition(at.server.Host+" returns a ciphertext that is not vault:vN:BASE64", "check that this is a transit engine")
	}
	return v1alpha1.NewSecret(a.Data.Plaintext), uri, nil
}

// ask sends a request for a key, with the token of the document or the one of a login.
func ask(ctx context.Context, k sdk.Key, at key, operation string, parameters map[string]any) (answer, error) {
	c, _ := sdk.ProviderConfig[config](k.ProviderConfig) // validated before
	header := map[string]string{"X-Vault-Request": "true"}
	if c.Namespace != "" {
		header["X-Vault-Namespace"] = c.Namespace
	}
	if c.AppRole != nil {
		login, err := c.post(ctx, at.server.String()+"/v1/auth/approle/login", header,
			map[string]any{"role_id": c.AppRole.RoleID, "secret_id": string(c.AppRole.SecretID.Reveal())})
		if err != nil {
			return answer{}, err
		}
		header["X-Vault-Token"] = login.Auth.Token
	} else {
		header["X-Vault-Token"] = string(c.Token.Reveal())
	}
	return c.post(ctx, at.server.String()+"/v1/"+at.mount+operation+at.name, header, parameters)
}

func (c config) post(ctx context.Context, url string, header map[string]string, parameters map[string]any) (answer, error) {
	var a answer
	_, err := cloud.Client{TLS: c.TLS}.Exchange(ctx, cloud.Message{Method: http.MethodPost, URL: url, Header: header, Body: cloud.JSON(parameters), Into: &a})
	return a, err
}
