package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/contract/v1alpha1"
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
	// Validate returns the errors of a location that need no connection. It is called before Fetch and Report. Nil finds none.
	Validate func(l Location) []Violation
	// Fetch opens the object at a location. An error with the code Retry is tried again for as long as the host permits.
	Fetch func(ctx context.Context, l Location) (Object, error)
	// Report keeps the report of a run at a location. Nil: the plugin keeps no reports.
	Report func(ctx context.Context, l Location, r RunReport) error
}

// Location is what a RemoteConfig or a ReportTarget document names.
type Location struct {
	Target target.Target
	// URI is the object, or the destination of a report.
	URI string
	// Field is the path of the field that holds URI.
	Field string
	// Beside means that the document names no destination for the report: it goes beside the object at URI.
	Beside bool
	// SHA256 is the digest that the host demands of the object, in lower-case hexadecimal; empty if it demands none.
	SHA256 string
	// ProviderConfig is spec.providerConfig, see the function ProviderConfig.
	ProviderConfig json.RawMessage
}

// Object is an opened object.
type Object struct {
	// Revision identifies the content at the source, for people: an ETag or a version.
	Revision string
	// Body holds the content. Its end is the end of the object: an object that may be incomplete ends with an error.
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

func (s Source) server(goos string) pluginv1.Describer {
	return &source{Source: s, about: about{name: s.Name, version: s.Version, os: s.OS, goos: goos}}
}

// NewSource returns the plugin as the service of the protocol, for this GOOS. Main serves it; tests call it directly.
func NewSource(s Source, goos string) pluginv1.Source {
	return s.server(goos).(pluginv1.Source) //nolint:forcetypeassert // server returns nothing else
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
	return s.describe(r, s.Secrets, capabilities, kinds...), nil
}

// Fetch implements pluginv1.Source.
func (s *source) Fetch(ctx context.Context, r pluginv1.FetchRequest, send func(pluginv1.Chunk) error) error {
	l, err := s.locate(r.Target, r.Document, false)
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
		return classify(ctx, err)
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
	err = classify(ctx, err)
	if known, ok := asContract(err); ok && known.Code == pluginv1.CodeInternal {
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
	return classify(ctx, s.Source.Report(ctx, l, RunReport{Body: r.Report, Sequence: r.Sequence}))
}

// locate decodes and validates a document.
func (s *source) locate(t target.Target, doc []byte, forReport bool) (Location, error) {
	if err := s.supports(t); err != nil {
		return Location{}, err
	}
	kind, err := s.kindOf(doc, v1alpha1.KindRemoteConfig, v1alpha1.KindReportTarget)
	if err != nil {
		return Location{}, err
	}
	l := Location{Target: t, Field: "spec.uri"}
	var violations []Violation
	if kind == v1alpha1.KindReportTarget {
		var want v1alpha1.ReportTarget
		violations = document.Unmarshal(doc, &want)
		l.URI, l.ProviderConfig = want.Spec.URI, want.Spec.ProviderConfig
	} else {
		var want v1alpha1.RemoteConfig
		violations = document.Unmarshal(doc, &want)
		l.URI, l.ProviderConfig, l.SHA256 = want.Spec.URI, want.Spec.ProviderConfig, want.Spec.SHA256
		if forReport {
			if l.Beside = want.Spec.Report == nil || want.Spec.Report.URI == ""; !l.Beside {
				l.URI, l.Field = want.Spec.Report.URI, "spec.report.uri"
			}
		}
	}
	if strings.TrimSpace(l.URI) == "" && len(violations) == 0 {
		violations = append(violations, Violation{Field: l.Field, Message: "is missing", Hint: "name the object"})
	}
	if s.Validate != nil && l.URI != "" {
		violations = document.Join(violations, s.Validate(l))
	}
	if len(violations) > 0 {
		return Location{}, InvalidConfig(violations...)
	}
	return l, nil
}
