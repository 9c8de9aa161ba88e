package cloud

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestMeaning: what a service says of its answer counts instead of the status, which stays in the message.
func TestMeaning(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	at := a.serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadRequest) })
	for _, test := range []struct {
		meaning      Meaning
		code         pluginv1.Code
		status, hint string
	}{
		{Meaning{}, pluginv1.CodePrecondition, "", ""},
		{Meaning{Code: "Word", Hint: "do it"}, pluginv1.CodePrecondition, "", "do it"},
		{Meaning{Status: http.StatusNotFound, Hint: "look"}, pluginv1.CodePrecondition, "404", "look"},
		{Meaning{Status: http.StatusUnauthorized}, pluginv1.CodePrecondition, "401", "check the credentials in spec.providerConfig"},
		{Meaning{Status: http.StatusTooManyRequests, Code: "Slow"}, pluginv1.CodeRetry, "", ""},
		{Meaning{Status: http.StatusServiceUnavailable}, pluginv1.CodeRetry, "", ""},
	} {
		c := a.client()
		c.Explain = func(*http.Response) Meaning { return test.meaning }
		_, err := get(t.Context(), t, c, at)
		var e *pluginv1.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, test.code, e.Code)
		assert.Contains(t, e.Message, "answers with the status 400 (Bad Request)")
		assert.Contains(t, e.Message, test.meaning.Code)
		assert.Equal(t, test.status, e.Facts[pluginv1.FactStatus])
		assert.Equal(t, test.hint, e.Hint)
		c.SpreadUntil = time.Now().Add(time.Hour)
		_, err = get(t.Context(), t, c, at)
		require.ErrorAs(t, err, &e)
		assert.Equal(t, test.code == pluginv1.CodeRetry || test.meaning.Status == http.StatusNotFound, e.Code == pluginv1.CodeRetry)
	}
}
