package cloud

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// TestExchange: a message and its answer are JSON, the answer of a limited size; what is no such answer is not quoted.
func TestExchange(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	at := a.serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		assert.Equal(t, `{"in":1}`, string(body))
		assert.Equal(t, "application/json", r.Header.Get("Content-Type"))
		w.Header().Set("X", r.Header.Get("X"))
		answer := map[string]string{
			"/": `{"out": 2, "more": "c4n4ry"}`, "/text": "c4n4ry", "/type": `{"out": "c4n4ry"}`, "/large": `{"out": 2}` + strings.Repeat(" ", maxAnswerBytes),
		}[r.URL.Path]
		if answer == "" {
			w.WriteHeader(http.StatusConflict)
		}
		_, _ = io.WriteString(w, answer) // the client may have left
	})
	exchange := func(path string) (int, http.Header, error) {
		var into struct{ Out int }
		header, err := a.client().Exchange(t.Context(), Message{
			Method: http.MethodPost, URL: at + path, Header: map[string]string{"X": "c4n4ry"}, Body: JSON(map[string]int{"in": 1}), Into: &into,
		})
		return into.Out, header, err
	}
	out, header, err := exchange("/")
	require.NoError(t, err)
	assert.Equal(t, 2, out)
	assert.Equal(t, "c4n4ry", header.Get("X"))
	for _, path := range []string{"/text", "/type", "/large"} {
		_, _, err := exchange(path)
		refused(t, err, pluginv1.CodePrecondition, "answers with other data")
		assert.Zero(t, Status(err))
	}
	_, _, err = exchange("/c4n4ry")
	assert.Equal(t, 409, Status(err))
	refused(t, err, pluginv1.CodePrecondition, "409 (Conflict)")
	refused(t, Changed(err), pluginv1.CodeRetry, "another report was written")
	other := errors.New("other")
	assert.Equal(t, other, Changed(other))
	_, err = a.client().Exchange(t.Context(), Message{Method: http.MethodPost, URL: at + "/c4n4ry\n"})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "c4n4ry")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	type config struct {
		Token v1alpha1.Secret `json:"token"`
	}
	assert.Equal(t, []string{"spec.providerConfig.token"}, Secrets[config]())
	var all Violations
	for _, value := range []string{"", "a b", "a\n", "ä", "\x7f"} {
		all.Credential(Config.Field("token"), v1alpha1.NewSecret([]byte(value)))
	}
	assert.Len(t, all, 5)
	all.Credential(Config.Field("token"), v1alpha1.NewSecret([]byte("visible~!")))
	assert.Len(t, all, 5)
	assert.Equal(t, "spec.providerConfig.token", all[0].Field)
}
