package main

import (
	"bytes"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
	"github.com/machineadm/machineadm/sdk"
)

// config is spec.providerConfig.
type config struct {
	credentials
	cloud.Signed
	// Read are the credentials of the machines, of a storage.
	Read *credentials `json:"read,omitempty"`
}

// credentials say which servers are accepted, and authenticate to them.
type credentials struct {
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

const at = cloud.Config

// grantsAccess matches the names of parameters that are credentials, or signatures of a URL: of S3, GCS, Azure and others.
var grantsAccess = lazyregexp.New(`(?i)^(?:x-(?:amz|goog)-(?:signature|credential|security-token)|sig|signature|(?:access_?|id_?|auth_?|private_?)?token|api_?key|password|passwd|secret|auth)$`)

// validate returns all violations of a location.
func validate(l sdk.Location) []sdk.Violation {
	c, decoding := sdk.ProviderConfig[config](l.ProviderConfig)
	own := c.queryOf(l)
	isCredential := c.Bearer != nil || c.Basic != nil || c.ClientCertificate != nil || len(c.Headers) > 0 || !own.IsZero()
	// The digest is of the object. A report beside it is Unsupported, whatever its URL.
	u, violations := cloud.ParseURL(l.Field, l.URI, l.SHA256 != "" && l.Field == "spec.uri", isCredential)
	all := cloud.Violations(violations)
	if u != nil && u.Scheme == "http" && (c.CA != "" || len(c.Pins) > 0) {
		all.Add(at, "has ca or pins, which plain http does not use", "use https, or remove them")
	}
	if u != nil && u.RawQuery == "" && (strings.Contains(u.Path, "/-/blob/") || u.Hostname() == "github.com" && strings.Contains(u.Path, "/blob/")) {
		all.Add(document.Path(l.Field), "is the page that shows the file, and not the file", "write the address behind the button Raw of that page")
	}
	if u != nil && (u.RawQuery != "" || u.ForceQuery) && (l.Access != "" || !own.IsZero()) {
		all.Add(document.Path(l.Field), "has a query", "remove it; one that grants access is in providerConfig")
	}
	if u != nil {
		for name := range u.Query() {
			if grantsAccess().MatchString(name) {
				all.Add(document.Path(l.Field), "has a query that grants access, and is shown in logs and reports", "give it as a secret: spec.providerConfig.query: {value: ...}")
				break
			}
		}
	}
	all = append(all, c.violations(at)...)
	query(&all, at.Field("query"), c.Query)
	query(&all, at.Field("report").Field("query"), c.Report.Query)
	if !slices.Contains([]string{"", http.MethodPost, http.MethodPut}, c.Report.Method) {
		all.Add(at.Field("report").Field("method"), "is neither POST nor PUT", "write one of the two")
	}
	if c.Read != nil {
		all = append(all, c.Read.violations(at.Field("read"))...)
	}
	return document.Join(decoding, all)
}

// query adds a violation unless the secret of a field is absent or the query of a URL.
func query(all *cloud.Violations, field document.Path, s v1alpha1.Secret) {
	text := s.Reveal()
	if _, err := url.ParseQuery(string(text)); !s.IsZero() && (err != nil || !isToken(text) || bytes.ContainsAny(text, "#?")) {
		all.Add(field, "is not the query of a URL", "give what follows its question mark, as {value: ...}")
	}
}

// queryOf returns the query that grants access to a location.
func (c config) queryOf(l sdk.Location) v1alpha1.Secret {
	if l.Field == "spec.report.uri" {
		return c.Report.Query
	}
	return c.Query
}

// violations returns the violations of the fields below the field at.
func (c credentials) violations(at document.Path) cloud.Violations {
	all := cloud.Violations(nil)
	if c.Bearer != nil && !isToken(c.Bearer.Reveal()) {
		all.Add(at.Field("bearer"), "is empty or has a space, a control character or one that is not ASCII", "give the token alone, without the word Bearer")
	}
	if c.Bearer != nil && c.Basic != nil {
		all.Add(at.Field("basic"), "excludes bearer", "remove one of the two")
	}
	if b := c.Basic; b != nil {
		if b.Username == "" || strings.ContainsFunc(b.Username, func(r rune) bool { return r == ':' || r < ' ' || r == 0x7f }) {
			all.Add(at.Field("basic").Field("username"), "is empty or has a colon or a control character", "see RFC 7617")
		}
		if len(b.Password.Reveal()) == 0 {
			all.Add(at.Field("basic").Field("password"), "is missing or empty", "give the password as {value: ...}")
		}
	}
	all = append(all, c.Validate(at)...)
	return append(all, c.headerViolations(at)...)
}

// isToken reports whether a bearer token has visible ASCII alone.
func isToken(token []byte) bool {
	return len(token) > 0 && !slices.ContainsFunc(token, func(b byte) bool { return b <= ' ' || b >= 0x7f })
}

func (c credentials) headerViolations(at document.Path) cloud.Violations {
	var all cloud.Violations
	seen := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		refuse := func(message, hint string) {
			all.Add(at.Field("headers").Key(name), message, hint)
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
func (c credentials) authenticate(r *http.Request) {
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
