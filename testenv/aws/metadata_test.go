package aws

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// TestMetadata: the service is as strict as that of EC2 with version 1 switched off.
func TestMetadata(t *testing.T) {
	t.Parallel()
	m := &Metadata{Region: "eu-central-1", Role: "node", ID: "AKID", Secret: "s", Token: "t"}
	ask := func(method, path string, header ...string) (int, string) {
		r := httptest.NewRequestWithContext(t.Context(), method, "http://169.254.169.254"+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		answer := httptest.NewRecorder()
		m.ServeHTTP(answer, r)
		return answer.Code, answer.Body.String()
	}
	const token, ttl, held, region = "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "X-aws-ec2-metadata-token", "/latest/meta-data/placement/region"
	status, session := ask(http.MethodPut, token, ttl, "1")
	assert.Equal(t, http.StatusOK, status)
	for want, request := range map[int][]string{
		http.StatusForbidden:        {http.MethodPut, token, ttl, "60", "X-Forwarded-For", "192.0.2.1"},
		http.StatusMethodNotAllowed: {http.MethodGet, token, ttl, "60"},
		http.StatusBadRequest:       {http.MethodPut, token},
		http.StatusUnauthorized:     {http.MethodGet, region},
		http.StatusNotFound:         {http.MethodGet, "/latest/meta-data/", held, session},
	} {
		status, _ := ask(request[0], request[1], request[2:]...)
		assert.Equal(t, want, status, request)
	}
	for _, seconds := range []string{"0", "21601", "x"} {
		status, _ := ask(http.MethodPut, token, ttl, seconds)
		assert.Equal(t, http.StatusBadRequest, status)
	}
	status, _ = ask(http.MethodPost, region, held, session)
	assert.Equal(t, http.StatusMethodNotAllowed, status)
	status, text := ask(http.MethodGet, region, held, session)
	assert.Equal(t, http.StatusOK, status)
	assert.Equal(t, "eu-central-1", text)
	assert.Eventually(t, func() bool {
		status, _ := ask(http.MethodGet, region, held, session)
		return status == http.StatusUnauthorized
	}, 2*time.Minute, 50*time.Millisecond, "the session has ended")
}
