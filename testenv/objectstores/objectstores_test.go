package objectstores

//machineadm:tier system

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/testenv/authority"
)

const key = "a b/c+d.txt"

func TestS3(t *testing.T) {
	t.Parallel()
	s := StartS3(t, nil)
	first := s.Put(t, key, []byte("first"))
	second := s.Put(t, key, []byte("second"))
	assert.NotEqual(t, first.Get("ETag"), second.Get("ETag"))
	assert.NotEqual(t, first.Get("X-Amz-Version-Id"), second.Get("X-Amz-Version-Id"))
	assert.Equal(t, "second", string(s.Get(t, key)))
	old, err := s.sign(t.Context(), http.MethodGet, s.URL(key)+"?versionId="+first.Get("X-Amz-Version-Id"), time.Minute)
	require.NoError(t, err)
	read := func(url string) string {
		_, data, err := s.do(t.Context(), http.MethodGet, url, "", nil)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	assert.Equal(t, "first", read(old))

	assert.Contains(t, read(s.URL(key)), "403 Forbidden")
	signed := s.Presign(t, http.MethodGet, key, time.Minute)
	assert.Equal(t, "second", read(signed))
	assert.Contains(t, read(signed+"0"), "SignatureDoesNotMatch")
	assert.Contains(t, read(s.Presign(t, http.MethodPut, key, time.Minute)), "SignatureDoesNotMatch")
	assert.Contains(t, read(s.URL("absent")), "403 Forbidden")
	s.AllowReading(t)
	assert.Equal(t, "second", read(s.URL(key)))
	assert.Contains(t, read(s.URL("absent")), "404 Not Found")
	other := *s
	other.SecretKey += "x"
	_, _, err = other.send(t.Context(), http.MethodPut, other.URL(key), nil)
	require.ErrorContains(t, err, "SignatureDoesNotMatch")
}

func TestGCS(t *testing.T) {
	t.Parallel()
	s := StartGCS(t, nil)
	generation := func(resource []byte) string {
		var r struct{ Generation string }
		require.NoError(t, json.Unmarshal(resource, &r))
		return r.Generation
	}
	first := generation(s.Put(t, key, []byte("first")))
	assert.NotEqual(t, first, generation(s.Put(t, key, []byte("second"))))
	assert.Equal(t, "second", string(s.Get(t, key)))
	_, _, err := s.do(t.Context(), http.MethodGet, s.URL("absent"), "", nil)
	require.ErrorContains(t, err, "404 Not Found")
}

// TestConditions: both stores refuse to replace an object that is there when the condition of a write is that none is.
func TestConditions(t *testing.T) {
	t.Parallel()
	s, g := StartS3(t, nil), StartGCS(t, nil)
	write := func(method, url string) int {
		request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("x"))
		require.NoError(t, err)
		request.Header.Set("If-None-Match", "*")
		answer, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.StatusCode
	}
	upload := g.Endpoint + "/upload/storage/v1/b/" + g.Bucket + "/o?uploadType=media&name=x&ifGenerationMatch=0"
	for _, want := range []int{http.StatusOK, http.StatusPreconditionFailed} {
		assert.Equal(t, want, write(http.MethodPut, s.Presign(t, http.MethodPut, "x", time.Minute)))
		assert.Equal(t, want, write(http.MethodPost, upload))
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	ca := authority.New(t)
	s, g := StartS3(t, &ca), StartGCS(t, &ca)
	s.Put(t, key, []byte("s3"))
	g.Put(t, key, []byte("gcs"))
	assert.Equal(t, "s3", string(s.Get(t, key)))
	assert.Equal(t, "gcs", string(g.Get(t, key)))
	for _, endpoint := range []string{s.Endpoint, g.Endpoint} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, endpoint, nil)
		require.NoError(t, err)
		_, err = http.DefaultClient.Do(request) //nolint:bodyclose // there is none
		require.ErrorContains(t, err, "certificate signed by unknown authority")
	}
}
