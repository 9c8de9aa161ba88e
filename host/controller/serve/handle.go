package serve

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"
)

// handler answers requests.
type handler struct {
	options  Options
	metrics  *metrics
	denials  *denials
	releases *releases
	working  chan struct{} // has an element for each request that the backend works on
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := parsePath(r.URL.EscapedPath())
	a := h.answer(w, r, t)
	defer a.close()
	h.metrics.request(t.route, a.code)
	h.options.Log.V(4).Info("answered", "route", t.route, "config", t.of, "code", a.code, "client", r.RemoteAddr)
	n := a.send(w, h.options.Limits.Write)
	h.metrics.bytes.WithLabelValues(t.route, sent).Add(float64(n))
}

// answer returns the answer to a request, whatever the backend does.
func (h *handler) answer(w http.ResponseWriter, r *http.Request, t target) (a answer) {
	defer func() {
		if value := recover(); value != nil { // its text may have what the backend worked on
			h.options.Log.Error(nil, "the backend panicked", "route", t.route, "config", t.of,
				"type", fmt.Sprintf("%T", value), "stack", string(debug.Stack()))
			a = failure(http.StatusInternalServerError, "failed")
		}
	}()
	switch {
	case t.route == routeNone, t.route == routeRelease && h.releases.dir == "":
		return failure(http.StatusNotFound, "no such path")
	case r.Method != t.method:
		return failure(http.StatusMethodNotAllowed, "only "+t.method, "Allow", t.method)
	case t.route == routeRelease:
		return h.releases.open(t.file)
	}
	bearer, valid := parseBearer(r.Header.Values("Authorization"))
	if !valid {
		return failure(http.StatusUnauthorized, "Authorization must be Bearer with a token of 256 bits", "WWW-Authenticate", "Bearer")
	}
	client := clientOf(r.RemoteAddr)
	if h.denials.exceeded(client) {
		return busy("too many denied requests from this address")
	}
	var data []byte
	var err error
	if t.route == routeData {
		err = h.work(r.Context(), func(ctx context.Context) (err error) {
			data, err = h.options.Backend.Data(ctx, t.of, bearer)
			return err
		})
	} else {
		err = h.report(w, r, t, bearer)
	}
	switch {
	case err == nil && t.route == routeData:
		return answer{code: http.StatusOK, kind: "application/yaml", body: bytes.NewReader(data), size: int64(len(data))}
	case err == nil, errors.Is(err, ErrOld):
		return answer{code: http.StatusNoContent}
	case errors.Is(err, ErrDenied):
		h.denials.add(client)
	}
	return failed(err)
}

// errBusy is the error of a request that got no slot of the backend within Limits.Wait.
var errBusy = errors.New("busy")

// work calls the backend as soon as it works on fewer requests than Limits.Requests.
func (h *handler) work(ctx context.Context, do func(context.Context) error) error {
	waiting, cancel := context.WithTimeout(ctx, h.options.Limits.Wait)
	defer cancel()
	select {
	case h.working <- struct{}{}:
	case <-waiting.Done(): // or the client has closed the connection
		return errBusy
	}
	defer func() { <-h.working }()
	ctx, cancel = context.WithTimeout(ctx, h.options.Limits.Work)
	defer cancel()
	return do(ctx)
}

// report reads a report while the backend does not wait for it.
func (h *handler) report(w http.ResponseWriter, r *http.Request, t target, bearer string) error {
	numbers := r.Header.Values("Machineadm-Sequence")
	if len(numbers) != 1 {
		return &InvalidError{"exactly one Machineadm-Sequence is required"}
	}
	sequence, err := strconv.ParseUint(numbers[0], 10, 64)
	if err != nil {
		return &InvalidError{"Machineadm-Sequence must be a number of 64 bits"}
	}
	if err := h.work(r.Context(), func(ctx context.Context) error { return h.options.Backend.Authorize(ctx, t.of, bearer) }); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.options.Limits.BodyBytes))
	h.metrics.bytes.WithLabelValues(t.route, received).Add(float64(len(body)))
	if err != nil {
		return readError{err}
	}
	return h.work(r.Context(), func(ctx context.Context) error { return h.options.Backend.Report(ctx, t.of, bearer, sequence, body) })
}

// readError is why the body of a request is incomplete.
type readError struct{ error }

// Unwrap returns the error of the reader.
func (e readError) Unwrap() error { return e.error }

// failed returns the answer for an error. Its text is for the client only if it is an *InvalidError.
func failed(err error) answer {
	if invalid, ok := errors.AsType[*InvalidError](err); ok {
		return failure(http.StatusBadRequest, invalid.Problem)
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return failure(http.StatusRequestEntityTooLarge, fmt.Sprintf("a report has at most %d bytes", large.Limit))
	}
	_, reading := errors.AsType[readError](err)
	switch {
	case errors.Is(err, ErrDenied):
		return failure(http.StatusForbidden, "denied")
	case errors.Is(err, errBusy):
		return busy("too many requests")
	case reading && errors.Is(err, os.ErrDeadlineExceeded):
		return failure(http.StatusRequestTimeout, "the report came too slowly")
	case reading:
		return failure(http.StatusBadRequest, "the report is incomplete")
	}
	return failure(http.StatusServiceUnavailable, "not available", "Retry-After", pause())
}
