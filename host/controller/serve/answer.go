package serve

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// chunk is the part of an answer that has a time limit.
const chunk = 64 << 10

// answer is what a client gets.
type answer struct {
	code    int
	kind    string // its Content-Type
	headers []string
	body    io.Reader // nil: none
	size    int64
	done    func() // may be nil
}

func (a answer) close() {
	if a.done != nil {
		a.done()
	}
}

// send writes the answer, and returns how much of the body was written. A client that got less than Content-Length finds out.
func (a answer) send(w http.ResponseWriter, limit time.Duration) (n int64) {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	for i := 0; i < len(a.headers); i += 2 {
		header.Set(a.headers[i], a.headers[i+1])
	}
	if a.body != nil {
		header.Set("Content-Type", a.kind)
		header.Set("Content-Length", strconv.FormatInt(a.size, 10))
		header.Set("X-Content-Type-Options", "nosniff")
	}
	w.WriteHeader(a.code)
	control := http.NewResponseController(w)
	for n < a.size {
		_ = control.SetWriteDeadline(time.Now().Add(limit)) // on a connection of net/http it does not fail
		part, err := io.CopyN(w, a.body, min(chunk, a.size-n))
		n += part
		if err != nil {
			break
		}
	}
	return n
}

// failure returns an answer without a success: one line of text, and headers as names and values.
func failure(code int, text string, headers ...string) answer {
	return answer{code: code, kind: "text/plain; charset=utf-8", body: bytes.NewReader([]byte(text + "\n")), size: int64(len(text) + 1), headers: headers}
}

func busy(text string) answer {
	return failure(http.StatusTooManyRequests, text, "Retry-After", pause())
}

// pause is a number of seconds: machines that were refused at once do not come back at once.
func pause() string { return strconv.Itoa(1 + rand.IntN(10)) }
