package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/sdk/internal/fault"
)

// Source is a whole plugin that fetches the streams of RemoteConfig documents.
type Source struct {
	// Name is the provider: the last part of the binary's name.
	Name string
	// Version is the plugin's own version.
	Version string
	// OS lists the operating systems that the plugin serves, as GOOS.
	OS []string
	// Secrets are the field paths of the secrets in spec.providerConfig, such as "spec.providerConfig.token".
	Secrets []string
	// Validate returns the errors of a location that show without a connection, all of them. It is called before every other
	// function, also for a location whose URI is missing. Nil finds none.
	Validate func(l Location) []Violation
	// Fetch opens the object at a location. An error of the network and one with the code Retry are tried again for as long as
	// the host permits, except that a certificate is refused at once.
	Fetch func(ctx context.Context, l Location) (Object, error)
	// Report keeps the report of a run at a location, and succeeds without an effect where a report with a higher Sequence is
	// kept. Nil: the plugin keeps no reports.
	Report func(ctx context.Context, l Location, r RunReport) error
	// Store keeps an object at a location, replaces what is there, and returns what a machine needs to fetch it. Errors are tried
	// again like the errors of Fetch. Nil, together with Remove: the plugin stores nothing.
	Store func(ctx context.Context, l Location, o NewObject) (Reference, error)
	// Remove removes the object at a location and the report beside it, and succeeds if there is none.
	Remove func(ctx context.Context, l Location) error
	// Presigns means that Store supports AccessPresigned.
	Presigns bool
}

// Location is what a RemoteConfig or a ReportTarget document names, or the place of an object in a storage.
type Location struct {
	Target target.Target
	// URI is the object, or the destination of a report.
	URI string
	// Field is the path of the field that holds URI.
	Field string
	// Beside means that the document names no destination for the report: it goes beside the object at URI.
	Beside bool
	// Access is how the machine that fetches an object has access to it, of Store and Remove: AccessRole or AccessPresigned.
	// Otherwise it is empty.
	Access string
	// SHA256 is the digest that the host demands of the object, in lower-case hexadecimal; empty if it demands none.
	SHA256 string
	// ProviderConfig is spec.providerConfig, see the function ProviderConfig.
	ProviderConfig json.RawMessage
}

// Object is an opened object.
type Object struct {
	// Revision identifies the content at the source, for people: an ETag or a version.
	Revision string
	// Body holds the content. It ends with io.EOF only if the object is complete; with another error the object is fetched
	// again. It is closed in any case.
	Body io.ReadCloser
}

// RunReport is the report of a run.
type RunReport struct {
	Body []byte // JSON
	// Sequence grows with every report of the machine. A report never replaces one with a higher number.
	Sequence uint64
}

// Answered adds to an error that the source answered and has no object for this machine, with the HTTP status that says so:
// 401, 403, 404 or 410. Then the host may use what an earlier run fetched.
func Answered(err error, status int) error {
	return WithFacts(err, map[string]string{pluginv1.FactStatus: fmt.Sprint(status)})
}

func (s Source) server(goos string) pluginv1.Describer { return NewSource(s, goos) }

// NewSource returns the plugin as the service of the protocol, for this GOOS. Main serves it; tests call it directly.
func NewSource(s Source, goos string) pluginv1.Source {
	return &source{Source: s, about: about{name: s.Name, version: s.Version, os: s.OS, goos: goos}}
}

type source struct {
	Source
	about
}

// Describe implements pluginv1.Source.
func (s *source) Describe(_ context.Context, r pluginv1.DescribeRequest) (pluginv1.Description, error) {
	kinds := []string{v1alpha1.KindRemoteConfig}
	var capabilities []string
	if s.Source.Report != nil {
		kinds, capabilities = append(kinds, v1alpha1.KindReportTarget), []string{pluginv1.CapabilityReport}
	}
	if s.Source.Store != nil {
		capabilities = append(capabilities, pluginv1.CapabilityStore)
	}
	return s.describe(r, s.Secrets, capabilities, kinds...), nil
}

// Fetch implements pluginv1.Source.
func (s *source) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	l, err := s.locate(r.Target, r.Document, false)
	if err == nil && r.ValidateOnly && s.Source.Report != nil && reportsElsewhere(r.Document) {
		_, err = s.locate(r.Target, r.Document, true) // or the report of the run is lost, when the run has ended
	}
	if err != nil || r.ValidateOnly {
		return err
	}
	return retrying(ctx, r.RetryFor, func() error { return s.fetch(ctx, l, r.MaxBytes, send) })
}

// fetchBuffer is the size of a part: of an object of 15 MiB, each part costs as much as 16 KiB of data.
const fetchBuffer = 128 << 10

func (s *source) fetch(ctx context.Context, l Location, most int64, send func(pluginv1.Chunk) error) (err error) {
	o, err := s.Source.Fetch(ctx, l)
	if err != nil {
		return unreachable(ctx, err)
	}
	defer func() { _ = o.Body.Close() }() // what was read is complete, or err says why not
	if err := send(pluginv1.Chunk{Begin: true, Revision: o.Revision}); err != nil {
		return err
	}
	buffer := make([]byte, fetchBuffer)
	for size := int64(0); ; {
		n, err := fill(buffer, o.Body)
		if size += int64(n); size > most {
			return Final(At(Precondition(fmt.Sprintf("the object is larger than %d bytes", most),
				"make it smaller, or divide it among several RemoteConfig documents"), l.Field))
		}
		if n > 0 {
			if err := send(pluginv1.Chunk{Data: buffer[:n]}); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return interrupted(ctx, err)
		}
	}
}

// fill reads until the buffer is full. Unlike that of io.ReadFull, its error is the one of the reader, also at the end.
func fill(buffer []byte, from io.Reader) (n int, err error) {
	for n < len(buffer) && err == nil {
		var more int
		more, err = from.Read(buffer[n:])
		n += more
	}
	return n, err
}

// interrupted returns the error of an object that ended before its end, which another try may get whole.
func interrupted(ctx context.Context, err error) error {
	if _, own := fault.Known(err); own {
		return err
	}
	err = unreachable(ctx, err)
	if known, ok := fault.Known(err); ok && known.Code == pluginv1.CodeInternal {
		return Retry(0, "the object ended before it was complete: "+known.Message)
	}
	return err
}

// Report implements pluginv1.Source.
func (s *source) Report(ctx context.Context, r pluginv1.ReportRequest) error {
	if s.Source.Report == nil {
		return Unsupported("", "provider "+s.name+" keeps no reports", "")
	}
	l, err := s.locate(r.Target, r.Document, true)
	if err != nil || r.ValidateOnly {
		return err
	}
	return unreachable(ctx, s.Source.Report(ctx, l, RunReport{Body: r.Report, Sequence: r.Sequence}))
}

// locate decodes and validates a document. The location of a report is its destination.
func (s *source) locate(t target.Target, doc []byte, report bool) (Location, error) {
	if err := s.supports(t); err != nil {
		return Location{}, err
	}
	kinds := []string{v1alpha1.KindRemoteConfig}
	if report {
		kinds = append(kinds, v1alpha1.KindReportTarget)
	}
	kind, err := s.kindOf(doc, kinds...)
	if err != nil {
		return Location{}, err
	}
	var l Location
	var violations []Violation
	if kind == v1alpha1.KindReportTarget {
		var want v1alpha1.ReportTarget
		violations = document.Unmarshal(doc, &want)
		l = Location{URI: want.Spec.URI, Field: uriField, ProviderConfig: want.Spec.ProviderConfig}
	} else {
		l, violations = remoteLocation(doc, report)
	}
	l.Target = t
	if strings.TrimSpace(l.URI) == "" {
		missing := Violation{Field: l.Field, Message: "is missing", Hint: "name the object, in the form of the provider"}
		violations = document.Join(violations, []Violation{missing})
	}
	if s.Validate != nil {
		violations = document.Join(violations, s.Validate(l))
	}
	if len(violations) > 0 {
		return Location{}, InvalidConfig(violations...)
	}
	return l, nil
}

const uriField = "spec.uri"

// remoteLocation decodes a RemoteConfig.
func remoteLocation(doc []byte, report bool) (Location, []Violation) {
	var want v1alpha1.RemoteConfig
	violations := document.Unmarshal(doc, &want)
	l := Location{URI: want.Spec.URI, Field: uriField, SHA256: want.Spec.SHA256, ProviderConfig: want.Spec.ProviderConfig}
	if l.SHA256 != "" && !isDigest(l.SHA256) {
		violations = document.Join(violations, []Violation{{
			Field: "spec.sha256", Message: "is not 64 hexadecimal digits in lower case", Hint: "copy what sha256sum prints of the object",
		}})
	}
	if report {
		if l.Beside = want.Spec.Report == nil || want.Spec.Report.URI == ""; !l.Beside {
			l.URI, l.Field = want.Spec.Report.URI, "spec.report.uri"
		}
	}
	return l, violations
}

// reportsElsewhere reports whether a RemoteConfig names the destination of its report.
func reportsElsewhere(doc []byte) bool {
	l, _ := remoteLocation(doc, true)
	return !l.Beside && l.URI != ""
}

func isDigest(text string) bool {
	return len(text) == 2*sha256.Size && strings.Trim(text, "0123456789abcdef") == ""
}
