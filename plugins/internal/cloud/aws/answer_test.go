package aws

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// TestFailures: the code of a service decides, whatever its status is, and is the only part of the answer in the message.
func TestFailures(t *testing.T) {
	t.Parallel()
	const (
		precondition = pluginv1.CodePrecondition
		retry        = pluginv1.CodeRetry
	)
	for code, test := range map[string]struct {
		sent   int
		code   pluginv1.Code
		status string
		hint   string
	}{
		"AccessDeniedException":            {400, precondition, "403", "README"},
		"AccessDenied":                     {403, precondition, "403", "README"},
		"UnrecognizedClientException":      {400, precondition, "403", "credentials"},
		"InvalidAccessKeyId":               {403, precondition, "403", "credentials"},
		"InvalidSignatureException":        {400, precondition, "403", "clock"},
		"SignatureDoesNotMatch":            {403, precondition, "403", "clock"},
		"ExpiredTokenException":            {400, precondition, "401", "expired"},
		"ExpiredToken":                     {400, precondition, "401", "expired"},
		"RequestTimeTooSkewed":             {403, precondition, "", "clock"},
		"NoSuchKey":                        {404, precondition, "404", "region"},
		"ParameterNotFound":                {400, precondition, "404", "region"},
		"ResourceNotFoundException":        {400, precondition, "404", "region"},
		"NotFoundException":                {400, precondition, "404", "region"},
		"PermanentRedirect":                {301, precondition, "", "region"},
		"AuthorizationHeaderMalformed":     {400, precondition, "", "region"},
		"InvalidCiphertextException":       {400, precondition, "", "encryptionContext"},
		"DisabledException":                {400, precondition, "", "enable"},
		"ThrottlingException":              {400, retry, "", ""},
		"Throttling":                       {400, retry, "", ""},
		"RequestThrottledException":        {400, retry, "", ""},
		"SlowDown":                         {503, retry, "", ""},
		"TooManyRequestsException":         {400, retry, "", ""},
		"KMSInternalException":             {500, retry, "", ""},
		"RequestTimeout":                   {400, retry, "", ""},
		"ValidationException":              {400, precondition, "", ""},
		"PreconditionFailed":               {412, retry, "", ""},
		"c4n4ry":                           {400, precondition, "", ""},
		"C4n4ry":                           {400, precondition, "", ""},
		"C" + strings.Repeat("c4n4ry", 10): {403, precondition, "403", "right"},
		"A" + strings.Repeat("a", 64):      {400, precondition, "", ""},
		"AccessDenied c4n4ry":              {404, precondition, "404", "location"},
	} {
		for _, body := range []string{
			`{"__type":"%s","message":"c4n4ry"}`, `{"message":"c4n4ry <x>","__type" : "com.amazonaws.kms#%s"}`, `{"__type":"%s:http://c4n4ry/"}`,
			"<?xml version=\"1.0\"?>\n<Error><Code>%s</Code><Message>c4n4ry</Message></Error>",
		} {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(test.sent)
				_, _ = fmt.Fprintf(w, body, code)
			})
			_, err := call(t, settled(), c)
			named := code
			if !regexp.MustCompile(`^[A-Z][A-Za-z]{1,63}$`).MatchString(code) {
				named = strconv.Itoa(test.sent)
			}
			e := refusal(t, err, test.code, named)
			assert.Equal(t, test.status, e.Facts[pluginv1.FactStatus], code)
			assert.Contains(t, e.Hint, test.hint, code)
		}
	}
}

// TestSpreading: what is refused in the first minute of the plugin may be permitted soon.
func TestSpreading(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1)%3 != 0 {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"AccessDeniedException"}`)
			return
		}
		_, _ = io.WriteString(w, `{"Value":"stream"}`)
	})
	for age, want := range map[time.Duration]pluginv1.Code{59 * time.Second: pluginv1.CodeRetry, 61 * time.Second: pluginv1.CodePrecondition} {
		m := Machine{Now: time.Now, Started: time.Now().Add(-age)}
		for range 2 {
			_, err := call(t, m, c)
			refused(t, err, want, "400 (Bad Request): AccessDeniedException")
		}
		got, err := call(t, m, c)
		require.NoError(t, err)
		assert.Equal(t, "stream", got)
	}
	a, err := Machine{Now: time.Now, Started: time.Now()}.Access(t.Context(), c, "eu-central-1")
	require.NoError(t, err)
	refused(t, a.Definite().Call(t.Context(), "ssm", "x", nil, nil), pluginv1.CodePrecondition, "AccessDenied")
}

// TestClock: a clock that is wrong by more than five minutes is named, whatever the service says, and is no reason to try again.
func TestClock(t *testing.T) {
	t.Parallel()
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `<Error><Code>SignatureDoesNotMatch</Code></Error>`)
	})
	for skew, clock := range map[time.Duration]bool{-365 * 24 * time.Hour: true, 6 * time.Minute: true, -4 * time.Minute: false, 0: false} {
		m := Machine{Now: func() time.Time { return time.Now().Add(skew) }, Started: time.Now()}
		_, err := call(t, m, c)
		e := refusal(t, err, map[bool]pluginv1.Code{true: pluginv1.CodePrecondition, false: pluginv1.CodeRetry}[clock], "SignatureDoesNotMatch")
		assert.Equal(t, clock, e.Hint == clockHint)
	}
}

// TestResults: a result that is cut, too large or of another form is never used.
func TestResults(t *testing.T) {
	t.Parallel()
	whole := `{"Value":"` + strings.Repeat("c4n4ry", 100) + `"}`
	for name, test := range map[string]struct {
		head, body string
		code       pluginv1.Code
		text       string
	}{
		"cut":                 {"Content-Length: 613", whole[:300], pluginv1.CodeRetry, "ended before"},
		"cut chunk":           {"Transfer-Encoding: chunked", "265\r\n" + whole[:300], pluginv1.CodeRetry, "ended before"},
		"cut, without length": {"Connection: close", whole[:300], pluginv1.CodePrecondition, "something else than the result"},
		"17 MiB":              {"Content-Length: 17825792", strings.Repeat("x", 17<<20), pluginv1.CodePrecondition, "more data"},
		"HTML":                {"Connection: close", "<html>c4n4ry</html>", pluginv1.CodePrecondition, "something else than the result"},
		"redirect":            {"Location: https://c4n4ry.example/\r\nContent-Length: 0", "", pluginv1.CodePrecondition, "302"},
	} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if !assert.NoError(t, err) {
				return
			}
			status := "200 OK"
			if name == "redirect" {
				status = "302 Found"
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 "+status+"\r\n"+test.head+"\r\n\r\n"+test.body) // the client may have left
			_ = conn.Close()
		})
		_, err := call(t, settled(), c)
		e := refusal(t, err, test.code, test.text)
		assert.NotEmpty(t, e.Message, name)
	}
}

// FuzzErrorCode: whatever a server answers, what is shown of it is one word of letters.
func FuzzErrorCode(f *testing.F) {
	f.Add([]byte(`{"__type":"com.amazonaws.kms#NotFoundException"}`))
	f.Add([]byte("<Error><Code>NoSuchKey</Code></Error>"))
	f.Add([]byte("<Code>A\xff</Code>"))
	word := regexp.MustCompile(`^([A-Z][A-Za-z]{1,63})?$`)
	f.Fuzz(func(t *testing.T, body []byte) {
		if code := errorCode(body); !word.MatchString(code) {
			t.Errorf("%q", code)
		}
	})
}
