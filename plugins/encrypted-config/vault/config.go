package main

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	cloud.TLS
	// Token is a token of Vault.
	Token *v1alpha1.Secret `json:"token,omitempty"`
	// AppRole is a login for a token.
	AppRole *appRole `json:"approle,omitempty"`
	// Namespace is a namespace of Vault Enterprise, of HCP Vault or of OpenBao.
	Namespace string `json:"namespace,omitempty"`
}

// appRole is a login by the method approle, at its default path.
type appRole struct {
	RoleID   string          `json:"roleID"`
	SecretID v1alpha1.Secret `json:"secretID"`
}

// key is a key of a transit engine.
type key struct {
	server      *url.URL
	mount, name string
}

const (
	field = document.Path("spec.passphraseURI")
	// ciphertext is what Vault returns, the form in which the URI has it too. Its base64 has no character that a URI cannot have.
	ciphertext = `^vault:v[0-9]{1,9}:[A-Za-z0-9+/]+={0,2}$`
	segment    = `[A-Za-z0-9_-][A-Za-z0-9._-]*`
)

// parse splits vault://CIPHERTEXT@HOST:PORT/MOUNT/KEY. MOUNT can have several parts.
func parse(uri string) (encrypted string, k key, ok bool) {
	u, err := v1alpha1.ParsePassphraseURI(uri)
	if err != nil || u.Scheme != "vault" || !regexp.MustCompile(ciphertext).MatchString(u.Encrypted) {
		return "", key{}, false
	}
	k, ok = parseKey(u.Location)
	return u.Encrypted, k, ok
}

func parseKey(location string) (key, bool) {
	host, path, _ := strings.Cut(location, "/")
	at := strings.LastIndexByte(path, '/')
	server, ok := cloud.ParseServer(host)
	if !ok || !regexp.MustCompile(`^`+segment+`(/`+segment+`)+$`).MatchString(path) {
		return key{}, false
	}
	return key{server, path[:at], path[at+1:]}, true
}

// String returns the key as parseKey reads it.
func (k key) String() string { return k.server.Host + "/" + k.mount + "/" + k.name }

// validate returns all violations of a key.
func validate(k sdk.Key) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](k.ProviderConfig)
	all := c.violations()
	if _, _, ok := parse(k.URI); !ok {
		all.Add(field, "is not vault://CIPHERTEXT@HOST:PORT/MOUNT/KEY", "CIPHERTEXT is what Vault returned: vault:v1: and base64")
	}
	return document.Join(decoding, all)
}

func (c config) violations() cloud.Violations {
	all := cloud.Violations(c.Validate(cloud.Config))
	switch at := cloud.Config; {
	case (c.Token == nil) == (c.AppRole == nil):
		all.Add(at.Field("token"), "is missing, or excludes approle", "give either a token or an AppRole")
	case c.Token != nil:
		all.Credential(at.Field("token"), *c.Token)
	default:
		all.Credential(at.Field("approle").Field("secretID"), c.AppRole.SecretID)
		if c.AppRole.RoleID == "" {
			all.Add(at.Field("approle").Field("roleID"), "is missing", "vault read auth/approle/role/NAME/role-id prints it")
		}
	}
	if strings.ContainsFunc(c.Namespace, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		all.Add(cloud.Config.Field("namespace"), "has a space, a control character or one that is not ASCII", "write it like VAULT_NAMESPACE")
	}
	return all
}
