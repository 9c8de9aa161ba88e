package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
)

const (
	algorithm   = "AWS4-HMAC-SHA256"
	stampLayout = "20060102T150405Z"
)

// credentials belong to a user or, with a token, to a session.
type credentials struct {
	id            string
	secret, token v1alpha1.Secret
	expires       time.Time // of a session, as far as it is known
}

// sign adds the signature of a request: Signature Version 4 in the Authorization header, over every header that the request has
// by now and over the digest of the body. The path has to be escaped by cloud.Escaped. Source: the IAM User Guide, "Create a signed
// AWS API request".
func (c credentials) sign(r *http.Request, body []byte, region, service string, now time.Time) {
	stamp := now.UTC().Format(stampLayout)
	sum := sha256.Sum256(body)
	digest := hex.EncodeToString(sum[:])
	r.Header.Set("X-Amz-Date", stamp)
	if service == "s3" {
		r.Header.Set("X-Amz-Content-Sha256", digest)
	}
	if token := c.token.Reveal(); len(token) > 0 {
		r.Header.Set("X-Amz-Security-Token", string(token))
	}
	headers := map[string]string{"host": r.URL.Host}
	names := []string{"host"}
	for name, values := range r.Header {
		lower := strings.ToLower(name)
		names = append(names, lower)
		headers[lower] = strings.Join(strings.Fields(strings.Join(values, ",")), " ")
	}
	slices.Sort(names)
	// What is sent has to be what is signed.
	r.URL.RawQuery = encoded(r.URL.Query())
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n"
	for _, name := range names {
		canonical += name + ":" + headers[name] + "\n"
	}
	signed := strings.Join(names, ";")
	scope := scopeOf(stamp, region, service)
	r.Header.Set("Authorization", algorithm+" Credential="+c.id+"/"+scope+", SignedHeaders="+signed+
		", Signature="+c.signature(stamp, scope, canonical+"\n"+signed+"\n"+digest))
}

// presign adds a signature for one method to the query of a URL of S3, which is valid for some time from now on: Signature Version 4
// over the host and not over a body. Source: the API reference of S3, "Authenticating Requests: Using Query Parameters".
func (c credentials) presign(method string, u *url.URL, region string, now time.Time, valid time.Duration) {
	const signed = "host"
	stamp := now.UTC().Format(stampLayout)
	scope := scopeOf(stamp, region, "s3")
	query := u.Query()
	for name, value := range map[string]string{
		"Algorithm": algorithm, "Credential": c.id + "/" + scope, "Date": stamp, "SignedHeaders": signed,
		"Expires": strconv.FormatInt(int64(valid/time.Second), 10), "Security-Token": string(c.token.Reveal()),
	} {
		if value != "" {
			query.Set("X-Amz-"+name, value)
		}
	}
	u.RawPath = cloud.Escaped(u.Path)
	u.RawQuery = encoded(query)
	signature := c.signature(stamp, scope, strings.Join([]string{
		method, u.EscapedPath(), u.RawQuery, "host:" + u.Host, "", signed, "UNSIGNED-PAYLOAD",
	}, "\n"))
	u.RawQuery += "&X-Amz-Signature=" + signature
}

// signature returns the signature of a canonical request.
func (c credentials) signature(stamp, scope, canonical string) string {
	sum := sha256.Sum256([]byte(canonical))
	toSign := strings.Join([]string{algorithm, stamp, scope, hex.EncodeToString(sum[:])}, "\n")
	key := slices.Concat([]byte("AWS4"), c.secret.Reveal())
	for _, part := range append(strings.Split(scope, "/"), toSign) {
		h := hmac.New(sha256.New, key)
		_, _ = h.Write([]byte(part)) // a hash does not fail
		key = h.Sum(nil)
	}
	return hex.EncodeToString(key)
}

func scopeOf(stamp, region, service string) string {
	return strings.Join([]string{stamp[:len("20060102")], region, service, "aws4_request"}, "/")
}

// encoded returns a query as it is signed.
func encoded(query url.Values) string { return strings.ReplaceAll(query.Encode(), "+", "%20") }
