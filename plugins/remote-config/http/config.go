package main

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	cloud.TLS
	Bearer  *v1alpha1.Secret           `json:"bearer,omitempty"`
	Basic   *basic                     `json:"basic,omitempty"`
	Headers map[string]v1alpha1.Secret `json:"headers,omitempty"`
}

// basic is a user of HTTP's Basic authentication (RFC 7617).
type basic struct {
	Username string          `json:"username"`
	Password v1alpha1.Secret `json:"password"`
}

const at = document.Path("spec.providerConfig")

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	credentials := c.Bearer != nil || c.Basic != nil || c.ClientCertificate != nil || len(c.Headers) > 0
	// The digest is of the object. A report beside it is Unsupported, whatever its URL.
	u, all := cloud.ParseURL(l.Field, l.URI, l.SHA256 != "" && l.Field == "spec.uri", credentials)
	refuse := func(at document.Path, message, hint string) {
		all = append(all, sdk.Violation{Field: string(at), Message: message, Hint: hint})
	}
	if u != nil && u.Scheme == "http" && (c.CA != "" || len(c.Pins) > 0) {
		refuse(at, "has ca or pins, which plain http does not use", "use https, or remove them")
	}
	if c.Bearer != nil && !isToken(c.Bearer.Reveal()) {
		refuse(at.Field("bearer"), "is empty or has a space, a control character or one that is not ASCII", "give the token alone, without the word Bearer")
	}
	if c.Bearer != nil && c.Basic != nil {
		refuse(at.Field("basic"), "excludes bearer", "remove one of the two")
	}
	if b := c.Basic; b != nil {
		if b.Username == "" || strings.ContainsFunc(b.Username, func(r rune) bool { return r == ':' || r < ' ' || r == 0x7f }) {
			refuse(at.Field("basic").Field("username"), "is empty or has a colon or a control character", "see RFC 7617")
		}
		if len(b.Password.Reveal()) == 0 {
			refuse(at.Field("basic").Field("password"), "is missing or empty", "give the password as {value: ...}")
		}
	}
	all = append(all, c.Validate(at)...)
	all = append(all, c.headerViolations()...)
	return document.Join(decoding, all)
}

// isToken reports whether a bearer token has visible ASCII alone.
func isToken(token []byte) bool {
	return len(token) > 0 && !slices.ContainsFunc(token, func(b byte) bool { return b <= ' ' || b >= 0x7f })
}

func (c config) headerViolations() []sdk.Violation {
	var all []sdk.Violation
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		refuse := func(message, hint string) {
			all = append(all, sdk.Violation{Field: string(at.Field("headers").Key(name)), Message: message, Hint: hint})
		}
		lower := strings.ToLower(name)
		switch other, twice := seen[lower]; {
		case !regexp.MustCompile("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$").MatchString(name):
			refuse("is not the name of a header", "use letters, digits and hyphens")
		case isReserved(lower):
			refuse("is a header that the request has itself, or that changes what the answer means", "remove it")
		case lower == "authorization" && (c.Bearer != nil || c.Basic != nil):
			refuse("excludes bearer and basic, which set this header", "remove one of the two")
		case twice:
			refuse("is the same header as "+other, "remove one of the two")
		}
		seen[lower] = name
		value := c.Headers[name].Reveal()
		if len(value) == 0 || slices.ContainsFunc(value, func(b byte) bool { return b < ' ' && b != '\t' || b == 0x7f }) {
			refuse("has an empty value, or one with a control character such as a line feed", "correct the value")
		}
	}
	return all
}

// isReserved reports whether a header, in lower case, is not for documents: it frames the message, chooses a part or another
// form of the object, or is set by this plugin.
func isReserved(name string) bool {
	return strings.HasPrefix(name, "proxy-") || strings.HasPrefix(name, "if-") ||
		slices.Contains([]string{
			"accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host", "keep-alive", "machineadm-sequence",
			"range", "referer", "te", "trailer", "transfer-encoding", "upgrade", "user-agent",
		}, name)
}

// authenticate adds the credentials to a request.
func (c config) authenticate(r *http.Request) {
	if c.Bearer != nil {
		r.Header.Set("Authorization", "Bearer "+string(c.Bearer.Reveal()))
	}
	if c.Basic != nil {
		r.SetBasicAuth(c.Basic.Username, string(c.Basic.Password.Reveal()))
	}
	for name, value := range c.Headers {
		r.Header.Set(name, string(value.Reveal()))
	}
}
