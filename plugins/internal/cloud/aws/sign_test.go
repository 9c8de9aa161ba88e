package aws

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/internal/cloud"
)

// TestSign has the cases of AWS's test suite for Signature Version 4 (aws-sig-v4-test-suite) and the examples of the API reference of
// S3, "Authenticating Requests: Using the Authorization Header", as far as they have headers that a request of ours can have.
func TestSign(t *testing.T) {
	t.Parallel()
	suite := time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC)
	s3 := time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC)
	const token = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsKWHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI" +
		"/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8phUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA=="
	for name, test := range map[string]struct {
		method, path, query, token, body string
		headers                          map[string]string
		want                             string
	}{
		"get-vanilla":                  {path: "/", want: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"},
		"get-vanilla-query-order-key":  {path: "/", query: "Param2=value2&Param1=value1", want: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"},
		"get-vanilla-utf8-query":       {path: "/", query: "ሴ=bar", want: "2cdec8eed098649ff3a119c94853b13c643bcf08f8b0a1d91e12c9027818dd04"},
		"get-unreserved":               {path: "/-._~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", want: "07ef7494c76fa4850883e2b006601f940f8a34d404d0cfa977f52a65bbf5f24f"},
		"get-utf8":                     {path: "/ሴ", want: "8318018e0b0f223aa2bbf98705b62bb787dc9c0e678f255a891fd03141be5d85"},
		"get-header-value-trim":        {path: "/", headers: map[string]string{"My-Header1": " value1", "My-Header2": ` "a   b   c"`}, want: "acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736"},
		"post-vanilla":                 {method: http.MethodPost, path: "/", want: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"},
		"post-header-key-sort":         {method: http.MethodPost, path: "/", headers: map[string]string{"My-Header1": "value1"}, want: "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c"},
		"post-sts-header-before":       {method: http.MethodPost, path: "/", token: token, want: "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead"},
		"post-x-www-form-urlencoded":   {method: http.MethodPost, path: "/", headers: map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, body: "Param1=value1", want: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a"},
		"s3 GET Object":                {path: "/test.txt", headers: map[string]string{"Range": "bytes=0-9"}, want: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		"s3 PUT Object":                {method: http.MethodPut, path: "/test$file.text", headers: map[string]string{"Date": "Fri, 24 May 2013 00:00:00 GMT", "X-Amz-Storage-Class": "REDUCED_REDUNDANCY"}, body: "Welcome to Amazon S3.", want: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
		"s3 GET Bucket Lifecycle":      {path: "/", query: "lifecycle", want: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		"s3 Get Bucket (List Objects)": {path: "/", query: "prefix=J&max-keys=2", want: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		keys := credentials{id: "AKIDEXAMPLE", secret: v1alpha1.NewSecret([]byte("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")), token: v1alpha1.NewSecret([]byte(test.token))}
		host, service, now := "example.amazonaws.com", "service", suite
		if strings.HasPrefix(name, "s3 ") {
			keys.id, keys.secret = "AKIAIOSFODNN7EXAMPLE", v1alpha1.NewSecret([]byte("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))
			host, service, now = "examplebucket.s3.amazonaws.com", "s3", s3
		}
		r, err := http.NewRequestWithContext(t.Context(), test.method, "https://"+host+cloud.Escaped(test.path)+"?"+test.query, bytes.NewReader([]byte(test.body)))
		require.NoError(t, err)
		for header, value := range test.headers {
			r.Header.Set(header, value)
		}
		keys.sign(r, []byte(test.body), "us-east-1", service, now)
		_, signature, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
		assert.Equal(t, test.want, signature, name)
	}
}

// TestPresign has the example of the API reference of S3, "Authenticating Requests: Using Query Parameters".
func TestPresign(t *testing.T) {
	t.Parallel()
	keys := credentials{id: "AKIAIOSFODNN7EXAMPLE", secret: v1alpha1.NewSecret([]byte("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"))}
	u := &url.URL{Scheme: "https", Host: "examplebucket.s3.amazonaws.com", Path: "/test.txt"}
	keys.presign(http.MethodGet, u, "us-east-1", time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC), 24*time.Hour)
	assert.Equal(t, "https://examplebucket.s3.amazonaws.com/test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524"+
		"%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"+
		"&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404", u.String())
}
