package google

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/internal/cloud"
)

// Presign returns the URL of a path of the service with a signature of the service account for a method, which is valid for some time
// from now on. The path is not escaped. The URL is a credential. Source: cloud.google.com/storage/docs/authentication/signatures, V4.
func (s Service) Presign(c Config, method, path string, now time.Time, valid time.Duration) (string, error) {
	const signed, algorithm = "host", "GOOG4-RSA-SHA256"
	a, err := parseAccount(*c.ServiceAccountKey)
	if err != nil {
		return "", err // validated before
	}
	path = cloud.Escaped(path)
	server := cmp.Or(c.Endpoint, s.Endpoint)
	_, host, _ := strings.Cut(server, "://")
	stamp := now.UTC().Format("20060102T150405Z")
	scope := stamp[:len("20060102")] + "/auto/storage/goog4_request"
	query := strings.ReplaceAll(url.Values{
		"X-Goog-Algorithm": {algorithm}, "X-Goog-Credential": {a.Email + "/" + scope}, "X-Goog-Date": {stamp},
		"X-Goog-Expires": {strconv.FormatInt(int64(valid/time.Second), 10)}, "X-Goog-SignedHeaders": {signed},
	}.Encode(), "+", "%20")
	canonical := sha256.Sum256([]byte(strings.Join([]string{method, path, query, "host:" + host, "", signed, "UNSIGNED-PAYLOAD"}, "\n")))
	digest := sha256.Sum256([]byte(strings.Join([]string{algorithm, stamp, scope, hex.EncodeToString(canonical[:])}, "\n")))
	signature, err := rsa.SignPKCS1v15(rand.Reader, a.private, crypto.SHA256, digest[:])
	return server + path + "?" + query + "&X-Goog-Signature=" + hex.EncodeToString(signature), err
}
