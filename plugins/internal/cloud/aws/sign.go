package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/v1alpha1"
)

const algorithm = "AWS4-HMAC-SHA256"

// credentials are those of a user or, with a token, of a session.
type credentials struct {
	id            string
	secret, token v1alpha1.Secret
}

// sign adds the signature of a request: Signature Version 4 in the Authorization header, over every header that the request has
// by now and over the digest of the body. The path has to be escaped by the function escaped. Source: the IAM User Guide, "Create a signed
// AWS API request".
func (c credentials) sign(r *http.Request, body []byte, region, service string, now time.Time) {
	stamp := now.UTC().Format("20060102T150405Z")
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
	r.URL.RawQuery = strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20")
	canonical := r.Method + "\n" + r.URL.EscapedPath() + "\n" + r.URL.RawQuery + "\n"
	for _, name := range names {
		canonical += name + ":" + headers[name] + "\n"
	}
	signed := strings.Join(names, ";")
	sum = sha256.Sum256([]byte(canonical + "\n" + signed + "\n" + digest))
	scope := []string{stamp[:len("20060102")], region, service, "aws4_request"}
	key := slices.Concat([]byte("AWS4"), c.secret.Reveal())
	toSign := strings.Join([]string{algorithm, stamp, strings.Join(scope, "/"), hex.EncodeToString(sum[:])}, "\n")
	for _, part := range append(slices.Clone(scope), toSign) {
		h := hmac.New(sha256.New, key)
		_, _ = h.Write([]byte(part)) // a hash does not fail
		key = h.Sum(nil)
	}
	r.Header.Set("Authorization", algorithm+" Credential="+c.id+"/"+strings.Join(scope, "/")+", SignedHeaders="+signed+
		", Signature="+hex.EncodeToString(key))
}

// escaped returns a path as S3 signs it: every byte but those of [A-Za-z0-9._~/-] as % and two upper-case hexadecimal digits.
func escaped(path string) string {
	var out strings.Builder
	for _, b := range []byte(path) {
		if 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || strings.IndexByte("-._~/", b) >= 0 {
			out.WriteByte(b)
			continue
		}
		out.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{b})))
	}
	return out.String()
}
