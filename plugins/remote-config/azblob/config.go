package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"

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
	// SAS is a shared access signature: the query of a URL that Azure signed.
	SAS *v1alpha1.Secret `json:"sas,omitempty"`
	// SharedKey is a key of the storage account.
	SharedKey *sharedKey `json:"sharedKey,omitempty"`
	// VersionID is the version of the blob. Empty: the newest.
	VersionID string `json:"versionId,omitempty"`
}

// sharedKey is a key of a storage account, which permits everything in it.
type sharedKey struct {
	Account string          `json:"account"`
	Key     v1alpha1.Secret `json:"key"`
}

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	u, violations := cloud.ParseURL(l.Field, l.URI, false, true)
	all := append(cloud.Violations(violations), c.Validate(cloud.Config)...)
	if u != nil {
		field := document.Path(l.Field)
		if container, blob, _ := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/"); container == "" || blob == "" {
			all.Add(field, "is not the URL of a blob", "write it as https://ACCOUNT.blob.core.windows.net/CONTAINER/BLOB")
		}
		if u.RawQuery != "" || u.ForceQuery {
			all.Add(field, "has a query", "move a shared access signature to spec.providerConfig.sas, and a version to spec.providerConfig.versionId")
		}
		_, isAzure := cloud.Domain(u, "blob.core.windows.net", "blob.storage.azure.net", "blob.core.usgovcloudapi.net", "blob.core.chinacloudapi.cn")
		if c.SAS == nil && c.SharedKey == nil && c.ClientSecret == nil && !isAzure {
			all.Add(field, "is not at Azure, and would get the token of the machine", "give other credentials in spec.providerConfig")
		}
	}
	if l.Access != "" && c.VersionID != "" {
		all.Add(cloud.Config.Field("versionId"), "is of one object", "remove it from the storage")
	}
	if l.Access == sdk.AccessPresigned && c.SharedKey == nil {
		all.Add("access", "is presigned, which needs a key of the storage account", "give providerConfig.sharedKey, or write role")
	}
	return document.Join(decoding, append(all, c.credentialViolations()...))
}

func (c config) credentialViolations() cloud.Violations {
	all := c.Violations()
	if at := cloud.Config.Field("sas"); c.SAS != nil {
		all.Credential(at, *c.SAS)
		if query, err := url.ParseQuery(c.query()); err != nil || query.Get("sig") == "" {
			all.Add(at, "is not a shared access signature", "give the query of the signed URL, with its parameter sig")
		}
		if c.SharedKey != nil || c.ClientSecret != nil || c.ManagedIdentity != "" {
			all.Add(at, "excludes other credentials", "remove one of them")
		}
	}
	if at := cloud.Config.Field("sharedKey"); c.SharedKey != nil {
		if !regexp.MustCompile(`^[a-z0-9]{3,24}$`).MatchString(c.SharedKey.Account) {
			all.Add(at.Field("account"), "is not the name of a storage account", "it has 3 to 24 lower-case letters and digits")
		}
		if _, err := c.SharedKey.bytes(); err != nil {
			all.Add(at.Field("key"), "is missing, or is not base64", "give key1 or key2 of the storage account, as {value: ...}")
		}
		if c.ClientSecret != nil || c.ManagedIdentity != "" {
			all.Add(at, "excludes other credentials", "remove one of them")
		}
	}
	return all
}

func (k sharedKey) bytes() ([]byte, error) {
	if len(k.Key.Reveal()) == 0 {
		return nil, base64.CorruptInputError(0)
	}
	return base64.StdEncoding.DecodeString(string(k.Key.Reveal()))
}

// sign returns the signature of a text, as base64.
func (k sharedKey) sign(text string) string {
	key, _ := k.bytes() // validated before
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(text)) // a hash does not fail
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// query is the shared access signature without the question mark of its URL.
func (c config) query() string { return strings.TrimPrefix(string(c.SAS.Reveal()), "?") }
