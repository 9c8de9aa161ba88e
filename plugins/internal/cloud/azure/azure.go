// Package azure gets access tokens of Microsoft Azure.
package azure

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// Identity is the account that asks a service. The zero Identity is the system-assigned identity of the virtual machine.
type Identity struct {
	// ManagedIdentity is the client ID of a user-assigned identity of the virtual machine.
	ManagedIdentity string `json:"managedIdentity,omitempty"`
	// ClientSecret is a credential of an application.
	ClientSecret *ClientSecret `json:"clientSecret,omitempty"`
}

// ClientSecret is a credential of an application in a tenant of Microsoft Entra ID.
type ClientSecret struct {
	TenantID string          `json:"tenantID"`
	ClientID string          `json:"clientID"`
	Secret   v1alpha1.Secret `json:"secret"`
	// Authority is https://HOST[:PORT] in the place of login.microsoftonline.com, for another cloud.
	Authority string `json:"authority,omitempty"`
}

// Tokens gives tokens for a resource.
type Tokens struct {
	Resource string // https://storage.azure.com or https://vault.azure.net
	Metadata string // cloud.MetadataServer, but in tests
	// SpreadUntil is the time until which 403 and 404 of the metadata service are a Retry.
	SpreadUntil time.Time
}

// Violations returns all violations of the fields.
func (i Identity) Violations() cloud.Violations {
	var all cloud.Violations
	isID := regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`).MatchString
	const hint = "it is a GUID, such as 00000000-0000-0000-0000-000000000000"
	if i.ManagedIdentity != "" && !isID(i.ManagedIdentity) {
		all.Add(cloud.Config.Field("managedIdentity"), "is not the client ID of an identity", hint)
	}
	s, at := i.ClientSecret, cloud.Config.Field("clientSecret")
	if s == nil {
		return all
	}
	if i.ManagedIdentity != "" {
		all.Add(at, "excludes managedIdentity", "remove one of the two")
	}
	if !isID(s.TenantID) {
		all.Add(at.Field("tenantID"), "is not the ID or the domain of a tenant", hint)
	}
	if !isID(s.ClientID) {
		all.Add(at.Field("clientID"), "is not the ID of an application", hint)
	}
	all.Credential(at.Field("secret"), s.Secret)
	if s.Authority != "" {
		all.Server(at.Field("authority"), s.Authority)
	}
	return all
}

// Token returns an access token: of an application (RFC 6749, section 4.4), or of the virtual machine. The client is for the former.
func (t Tokens) Token(ctx context.Context, i Identity, c cloud.Client) (string, error) {
	if s := i.ClientSecret; s != nil {
		authority := "https://login.microsoftonline.com"
		if s.Authority != "" {
			authority = s.Authority
		}
		return cloud.Token(ctx, c, authority+"/"+s.TenantID+"/oauth2/v2.0/token", url.Values{
			"grant_type": {"client_credentials"}, "client_id": {s.ClientID}, "client_secret": {string(s.Secret.Reveal())}, "scope": {t.Resource + "/.default"},
		})
	}
	query := url.Values{"api-version": {"2018-02-01"}, "resource": {t.Resource}}
	if i.ManagedIdentity != "" {
		query.Set("client_id", i.ManagedIdentity)
	}
	var access struct {
		Token string `json:"access_token"`
	}
	_, err := cloud.Metadata(ctx, t.Metadata+"/metadata/identity/oauth2/token?"+query.Encode(), map[string]string{"Metadata": "true"}, &access, t.SpreadUntil)
	if cloud.Status(err) == http.StatusGone { // the service is being updated, for at most 70 s: it documents this status as temporary
		err = sdk.Retry(0, pluginv1.AsError(err).Message)
	}
	return access.Token, err
}
