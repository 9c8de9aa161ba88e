package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
	"github.com/machineadm/machineadm/internal/httpclient"
	"github.com/machineadm/machineadm/internal/netfault"
)

// stall is the time without a byte after which a transfer fails.
const stall = 30 * time.Second

// source is the directory of one release: on a web server, or local if there is no URL.
type source struct {
	at     *url.URL // of manifest.json
	dir    string
	client *http.Client
	stall  time.Duration
}

// parse returns the source of a location, which is a URL or a path. The error names a URL by its ordinal, scheme and host: user,
// path and query can hold credentials.
func parse(ordinal int, text string, client *http.Client) (*source, error) {
	if !strings.Contains(text, "://") {
		dir := filepath.Clean(text)
		if filepath.Base(dir) == manifest.FileName {
			dir = filepath.Dir(dir)
		}
		return &source{dir: dir}, nil
	}
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" {
		name := fmt.Sprintf("location %d of the release", ordinal)
		if err == nil && at.Host != "" {
			name += ", at " + at.Scheme + "://" + at.Host + ","
		}
		return nil, &Error{
			Code: report.ExitUsage, Problem: name + " is neither a path nor a URL of http or https",
			Remedy: "give, for example, https://example.com/releases/v1.0.0/" + manifest.FileName,
		}
	}
	if path.Base(at.Path) != manifest.FileName {
		at = at.JoinPath(manifest.FileName)
	}
	return &source{at: at, client: client, stall: stall}, nil
}

// name returns where a file of the release is, for messages: without user and query, which can hold credentials.
func (s *source) name(file string) string {
	if s.at == nil {
		return filepath.Join(s.dir, file)
	}
	return (&url.URL{Scheme: s.at.Scheme, Host: s.at.Host, Path: path.Join(path.Dir(s.at.Path), file)}).String()
}

// open opens a file of the release. Its reads fail with an *Error.
func (s *source) open(ctx context.Context, file string) (io.ReadCloser, error) {
	if s.at == nil {
		return s.openLocal(file)
	}
	at := *s.at
	at.Path, at.RawPath = path.Join(path.Dir(at.Path), file), ""
	ctx, cancel := context.WithCancelCause(ctx)
	b := &body{source: s, file: file, cancel: cancel}
	b.timer = time.AfterFunc(s.stall, func() { cancel(fmt.Errorf("no data for %s", s.stall)) })
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, errors.Join(errors.New(s.name(file)+": not a valid URL"), b.Close())
	}
	b.ctx = ctx
	answer, err := s.client.Do(request) //nolint:bodyclose // body.Close does
	if err != nil {
		return nil, errors.Join(b.failure(err), b.Close())
	}
	b.data = answer.Body
	if answer.StatusCode != http.StatusOK {
		return nil, errors.Join(s.failure(file, "the server answers "+answer.Status, mayChange(answer.StatusCode)), b.Close())
	}
	return b, nil
}

// mayChange reports whether a server may answer differently soon.
func mayChange(status int) bool {
	return status >= 500 || status == http.StatusRequestTimeout || status == http.StatusTooManyRequests
}

func (s *source) openLocal(file string) (io.ReadCloser, error) {
	data, err := os.OpenFile(s.name(file), os.O_RDONLY|syscall.O_NONBLOCK, 0) // opening a FIFO would wait
	if err != nil {
		return nil, s.failure(file, errors.Unwrap(err).Error(), false)
	}
	info, err := data.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = s.failure(file, "is not a regular file", false)
	}
	if err != nil {
		return nil, errors.Join(err, data.Close())
	}
	return data, nil
}

// failure returns the error of a file that cannot be fetched.
func (s *source) failure(file, problem string, temporary bool) *Error {
	e := &Error{Code: report.ExitPrecondition, Problem: s.name(file) + ": " + problem, elsewhere: true, temporary: temporary}
	e.Remedy = "check the location, and that the whole release was copied there"
	if temporary {
		e.Code, e.Remedy = report.ExitDeadline, "check the name of the server, and that it runs and can be reached from here, and run again"
	}
	return e
}

// refused returns the error of a file that is not what was signed.
func (s *source) refused(file, problem, remedy string) *Error {
	return &Error{Code: report.ExitUntrusted, Problem: s.name(file) + ": " + problem, Remedy: remedy, elsewhere: true}
}

// body is the content of a file on a web server. A transfer that stalls is ended.
type body struct {
	source *source
	file   string
	data   io.ReadCloser
	timer  *time.Timer
	ctx    context.Context //nolint:containedctx // of this transfer, for the cause of its end
	cancel context.CancelCauseFunc
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.data.Read(p)
	b.timer.Reset(b.source.stall)
	if err != nil && !errors.Is(err, io.EOF) {
		err = b.failure(err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	if b.data == nil {
		return nil
	}
	return b.data.Close()
}

// failure returns the error of a request, without its URL. A name that does not resolve is temporary: the network of a machine
// that boots may come late. A certificate is not.
func (b *body) failure(err error) *Error {
	if cause := context.Cause(b.ctx); cause != nil {
		err = cause
	}
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	if refused, ok := errors.AsType[*Error](err); ok {
		return b.source.failure(b.file, refused.Problem, false)
	}
	if refused, ok := errors.AsType[*httpclient.RedirectError](err); ok {
		return b.source.failure(b.file, refused.Error(), false)
	}
	if netfault.Is(err, netfault.Certificate) {
		failed := b.source.failure(b.file, err.Error(), false)
		failed.Remedy = "correct the certificate of the server, or the trusted certificates or the clock of this machine"
		return failed
	}
	// The port of this end of the connection is another one at each attempt.
	text := regexp.MustCompile(`\S+->`).ReplaceAllString(err.Error(), "")
	return b.source.failure(b.file, text, !refuses(err))
}

// refuses reports whether an error is an answer that the server gives to every request: it has no TLS, or ended the handshake by
// an alert, for example because it wants a certificate of the client.
func refuses(err error) bool {
	alert, ok := errors.AsType[*net.OpError](err)
	ended := ok && alert.Op == "remote error" && alert.Err.Error() != "tls: internal error" // that one may pass
	return ended || errors.Is(err, http.ErrSchemeMismatch)
}

// newClient returns a client that uses the proxies of the environment and never leaves TLS.
func newClient() *http.Client {
	return httpclient.New(httpclient.Options{
		Redirects: 10,
		Proxy: func(r *http.Request) (*url.URL, error) {
			proxy, err := http.ProxyFromEnvironment(r)
			if err != nil { // its text can hold a password
				err = &Error{Problem: "the proxy in the environment (HTTP_PROXY, HTTPS_PROXY) is not a valid URL"}
			}
			return proxy, err
		},
		OnProxyConnectResponse: func(_ context.Context, _ *url.URL, _ *http.Request, answer *http.Response) error {
			if answer.StatusCode == http.StatusOK || mayChange(answer.StatusCode) {
				return nil
			}
			return &Error{Problem: "the proxy answers " + answer.Status}
		},
	})
}
