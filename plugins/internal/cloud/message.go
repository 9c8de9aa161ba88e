package cloud

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/machineadm/machineadm/sdk"
)

// maxAnswerBytes bounds an answer in JSON: a Secret of Kubernetes has at most 1 MiB, as base64 and with its metadata.
const maxAnswerBytes = 4 << 20

// Message is a request whose answer is JSON.
type Message struct {
	Method string
	URL    string
	Header map[string]string
	// Body is sent as JSON, unless Header has another Content-Type. Nil: none is sent.
	Body []byte
	// Into is a pointer for the answer. Nil: the answer is not read.
	Into any
	// Most is how many bytes the answer may have; 0 for 4 MiB.
	Most int64
}

// Exchange sends a message and decodes its answer. It returns the headers of the answer. Errors are the errors of Do, and a
// Precondition for an answer that Into cannot hold. None quotes the URL, the message or the answer.
func (c Client) Exchange(ctx context.Context, m Message) (http.Header, error) {
	answer, err := c.Open(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }() // what was read is complete, or err says why not
	if m.Into == nil {
		return answer.Header, nil
	}
	most := cmp.Or(m.Most, maxAnswerBytes)
	data, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > most || json.Unmarshal(data, m.Into) != nil {
		return nil, sdk.Precondition(hostPort(answer.Request.URL)+" answers with other data than this service has, or with too much",
			"check that this is the right server and port")
	}
	return answer.Header, nil
}

// Open sends a message and returns its answer, of which it has read nothing; the caller closes the body.
func (c Client) Open(ctx context.Context, m Message) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, m.Method, m.URL, bytes.NewReader(m.Body))
	if err != nil {
		return nil, errors.New("the URL of a valid document is not valid") // not err, which quotes it
	}
	if m.Body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	for name, value := range m.Header {
		r.Header.Set(name, value)
	}
	return c.Do(r)
}

// JSON encodes a value that always can be encoded, such as a struct of strings.
func JSON(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // the type is wrong
	}
	return data
}
