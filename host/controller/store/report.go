package store

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/report"
	bootstrap "github.com/machineadm/machineadm/host/controller/api/bootstrap/v1alpha1"
	"github.com/machineadm/machineadm/host/reporting/words"
)

// The limits of what a status keeps of a report. The schema of the custom resource has the same.
const (
	maxDocuments = 100
	maxFacts     = 16
	maxFact      = 256
	maxName      = 512
	maxCode      = 64
	maxMessage   = 4096
	maxHint      = 1024
)

// InvalidReportError refuses a report. Its message quotes nothing of it.
type InvalidReportError struct{ message string }

// Error implements error.
func (e *InvalidReportError) Error() string { return e.message }

func invalidReport(format string, args ...any) error {
	return &InvalidReportError{fmt.Sprintf(format, args...)}
}

// Reported is what a status keeps of a report. Like every reader it ignores fields that the report of a newer machineadm has (SPEC, section 12).
// Every text is escaped: it comes from a machine that nobody vouches for.
func Reported(body []byte, sequence uint64, now time.Time) (*bootstrap.BootstrapStatus, error) {
	if sequence == 0 || sequence > math.MaxInt64 {
		return nil, invalidReport("the sequence number must be from 1 to %d", int64(math.MaxInt64))
	}
	r, err := decode(body)
	if err != nil {
		return nil, err
	}
	status := &bootstrap.BootstrapStatus{
		Sequence: int64(sequence), ReportedAt: timeOf(now), RunID: text(r.RunID, maxCode), Outcome: string(r.Outcome),
		ExitCode: ptr.To(int32(r.ExitCode)), //nolint:gosec // decode has bounded it
		// A report of a run without an end is sent during the run.
		Message:   text(words.Headline(*r, r.Outcome == report.RunRunning), maxMessage),
		StartedAt: timeOf(r.StartedAt), FinishedAt: timeOf(r.FinishedAt),
	}
	if len(r.Errors) > 0 {
		first := &r.Errors[0]
		status.Document, status.Code, status.Hint = text(first.Document, maxName), text(first.Code, maxCode), text(first.Hint, maxHint)
		status.Phase = text(first.Facts["phase"], maxFact)
		status.Facts = facts(first.Facts)
	}
	for i := range r.Documents[:min(len(r.Documents), maxDocuments)] {
		d := &r.Documents[i]
		status.Documents = append(status.Documents, bootstrap.BootstrapDocument{
			Name: text(d.Kind+"/"+d.Name, maxName), Outcome: text(string(d.Outcome), maxCode),
			Duration: &metav1.Duration{Duration: time.Duration(min(max(d.DurationMs, 0), int64(math.MaxInt64/time.Millisecond))) * time.Millisecond},
		})
	}
	return status, nil
}

// decode reads a report, which is one JSON object and nothing behind it.
func decode(body []byte) (*report.Report, error) {
	if !utf8.Valid(body) {
		return nil, invalidReport("the report is not UTF-8")
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	var r report.Report
	if err := decoder.Decode(&r); err != nil {
		return nil, invalidReport("the report is not valid JSON, or a field has another type than in report.schema.json") // not err, which quotes it
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, invalidReport("the report has something behind its end")
	}
	known := []report.Outcome{
		report.RunRunning, report.RunSucceeded, report.RunFailed, report.RunInvalid, report.RunRebootRequired, report.RunInterrupted,
	}
	switch {
	case r.APIVersion != report.APIVersion || r.Kind != report.Kind:
		return nil, invalidReport("apiVersion and kind must be %s and %s", report.APIVersion, report.Kind)
	case !slices.Contains(known, r.Outcome):
		return nil, invalidReport("outcome must be one of %s", known)
	case r.ExitCode < 0 || r.ExitCode > math.MaxUint8:
		return nil, invalidReport("exitCode must be from 0 to 255")
	case r.Root != "":
		return nil, invalidReport("root: the run was on an image, and not on the machine")
	}
	return &r, nil
}

// facts are the first of a plugin by their names.
func facts(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	kept := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all))[:min(len(all), maxFacts)] {
		kept[text(name, maxCode)] = text(all[name], maxFact)
	}
	return kept
}

// text is safe for one line, and has at most limit characters.
func text(unsafe string, limit int) string {
	const more = " ..."
	// A character that is escaped becomes longer, never shorter: what is behind the limit cannot be needed.
	if len(unsafe) > utf8.UTFMax*limit {
		unsafe = strings.ToValidUTF8(unsafe[:utf8.UTFMax*limit], "") + more
	}
	escaped := []rune(words.Escape(unsafe))
	if len(escaped) > limit {
		return string(escaped[:limit-len(more)]) + more
	}
	return string(escaped)
}

// timeOf is nil for a time that JSON cannot hold, such as none.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() || t.UTC().Year() < 1 || t.UTC().Year() > 9999 {
		return nil
	}
	return ptr.To(metav1.NewTime(t.UTC().Truncate(time.Second)))
}

// reasonOf is the code of a failure as reason of a condition, if it is one of this release: reasons are labels of a metric, and a machine
// may write any.
func reasonOf(b *bootstrap.BootstrapStatus) string {
	for _, known := range []string{
		pluginv1.CodeInvalidConfig.String(), pluginv1.CodeUnsupported.String(), pluginv1.CodePrecondition.String(), pluginv1.CodeRetry.String(),
		pluginv1.CodeInternal.String(), report.CodeUsage, report.CodeNoPlugin, report.CodeUntrusted, report.CodeLocked, report.CodeDeadline,
		report.CodeInterrupted, report.CodeCrashed, report.CodeState, report.CodeReboot, report.CodeReboots, report.CodeConflict,
	} {
		if b.Code == known {
			return known
		}
	}
	return bootstrap.ReasonFailed
}
