package answers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// Object gets the object or the passphrase twice.
func Object(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	var last []byte
	for try := range 2 {
		got, err := p.Get(ctx, f.Planning(), process.Query{})
		switch {
		case errors.As(err, new(*process.CrashError)):
			return rig.Result{}, err
		case f.Runner.Case.Refused():
			return checkErrors(f.Runner.Case, p.Role.Call(), err), nil
		case err != nil:
			return rig.Failed(rig.Finding{
				Clause: process.ClauseOf(err, p.Role.Answer()), Expected: p.Role.Call() + " succeeds, because expect.yaml has no errors",
				Got:   fmt.Sprintf("%s fails: %v", p.Role.Call(), err),
				Cause: process.CauseOf(err, "the plugin refuses the document, or its counterpart has no such object"),
			}), nil
		}
		wrong, err := f.Runner.Wanted(got)
		if err != nil {
			return rig.Result{}, err
		}
		if try > 0 && !bytes.Equal(got, last) {
			wrong = "it differs from the one of the call before"
		}
		if wrong != "" {
			return rig.Failed(rig.Finding{
				Clause: p.Role.Answer(), Expected: "the bytes as they are kept, the same each time",
				Got:   fmt.Sprintf("%s answers %d bytes, and %s", p.Role.Call(), len(got), wrong),
				Cause: "a conversion of text, a line feed that is added or removed, a part that is lost, or an expectation that is wrong",
			}), nil
		}
		last = got
	}
	return rig.Passed(), nil
}

// MaxBytes fetches with limits of exactly the size of the object, and of a byte less.
func MaxBytes(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	whole, err := p.Get(ctx, f.Planning(), process.Query{})
	if err != nil || len(whole) < 2 || f.Runner.Unsettled {
		return rig.Skipped("the case has no object of two bytes or more, see %s", rig.ObjectName), nil //nolint:nilerr // that check reports it
	}
	wrong := rig.Finding{
		Clause: "P-42", Expected: "an object of max_bytes is fetched, and of a larger one no more than max_bytes, with a final Precondition",
		Cause: "the size is not counted, is counted before it is received, or the comparison is off by one",
	}
	size := int64(len(whole))
	if _, err := p.Get(ctx, f.Planning(), process.Query{Most: size}); err != nil {
		wrong.Got = fmt.Sprintf("with max_bytes of exactly the size of the object, Fetch fails: %v", err)
		return rig.Failed(wrong), nil
	}
	_, err = p.Get(ctx, f.Planning(), process.Query{Most: size - 1})
	if w := process.WrongAnswer(err, pluginv1.CodePrecondition); w != "" {
		wrong.Got = "with max_bytes of one byte less than the object has, Fetch " + w
		return rig.Failed(wrong), nil
	}
	if !process.ContractError(err).Final {
		wrong.Got = "with max_bytes of one byte less than the object has, Fetch answers a Precondition that is not final"
		return rig.Failed(wrong), nil
	}
	return rig.Passed(), nil
}

// ValidateOnly validates the document, as Fetch or Passphrase and, with the capability, as Report.
func ValidateOnly(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	c, r := f.Runner.Case, f.Planning()
	d, err := p.CallDescribe(ctx, r, false)
	if err != nil {
		return rig.Skipped("Describe fails, see describe"), nil //nolint:nilerr // that check reports it
	}
	seen := f.Runner.Counterpart.Seen.Load()
	_, err = p.Get(ctx, r, process.Query{ValidateOnly: true})
	switch {
	case errors.As(err, new(*process.CrashError)):
		return rig.Result{}, err
	case c.RefusedWith(pluginv1.CodeInvalidConfig):
		if got := checkErrors(c, p.Role.Call()+" with validate_only", err); got.Status != rig.Pass {
			got.Clause = "P-43"
			return got, nil
		}
	case err != nil && (process.ClauseOf(err, "") != "" || process.WrongAnswer(err, pluginv1.CodeUnsupported) != ""):
		return rig.Failed(rig.Finding{
			Clause: "P-43", Expected: "with validate_only, a valid document is answered without an error, a part or a passphrase",
			Got:   fmt.Sprintf("with validate_only, %s fails: %v", p.Role.Call(), err),
			Cause: process.CauseOf(err, "the plugin continues after it has validated the document"),
		}), nil
	}
	if slices.Contains(d.Capabilities, pluginv1.CapabilityReport) && p.Role == testcase.Source {
		err := p.Report(ctx, pluginv1.ReportRequest{Document: r.Document, Target: r.Target, ValidateOnly: true})
		if w := process.WrongAnswer(err, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported); err != nil && w != "" {
			return rig.Failed(rig.Finding{
				Clause: "P-43", Expected: "Report with validate_only succeeds, or refuses the document",
				Got: "Report with validate_only " + w, Cause: process.CauseOf(err, "the plugin continues after it has validated the document"),
			}), nil
		}
	}
	if f.Runner.Counterpart.Seen.Load() > seen {
		return rig.Failed(rig.Finding{
			Clause: "P-43", Expected: "validate_only makes no connection", Got: "with validate_only, the plugin connects to ${server}",
			Cause: "the plugin looks whether the object exists; a document is validated where there is no network",
		}), nil
	}
	return rig.Passed(), nil
}

// cancelTime is how soon a cancelled call ends, in the plugin too.
const cancelTime = 5 * time.Second

// Cancels cancels a call in which the counterpart does not answer, or at its first part, and then makes a whole one.
func Cancels(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	if f.Runner.Case.Refused() {
		return rig.Skipped("the document is refused"), nil
	}
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	wrong := rig.Finding{
		Clause: "P-29", Expected: fmt.Sprintf("a call that is cancelled ends within %s, and the next one is answered", cancelTime),
		Cause: "the context of the call does not reach its requests, or a lock is not released",
	}
	if bytes.Contains(f.Runner.Case.Config, []byte("${server}")) {
		over, asked := cancelStalled(ctx, f, p)
		if asked && !over {
			wrong.Got = fmt.Sprintf("%s was cancelled, and its request to ${server} was still open after %s", p.Role.Call(), cancelTime)
			return rig.Failed(wrong), nil
		}
	} else {
		short, cancel := context.WithCancel(ctx)
		if p.Role == testcase.KeyProvider {
			cancel()
		}
		_, _ = p.Get(short, f.Planning(), process.Query{Begun: cancel}) // the object can be too short for a cancelled call
		cancel()
	}
	if _, err := p.Get(ctx, f.Planning(), process.Query{}); err != nil {
		if errors.As(err, new(*process.CrashError)) {
			return rig.Result{}, err
		}
		wrong.Got = fmt.Sprintf("after a call that was cancelled, %s fails: %v", p.Role.Call(), err)
		return rig.Failed(wrong), nil
	}
	return rig.Passed(), nil
}

// cancelStalled cancels a call once ${server} was asked, and reports whether the plugin ended its request, and whether it
// made one.
func cancelStalled(ctx context.Context, f *rig.Fixture, p *process.Plugin) (over, asked bool) {
	peer := f.Runner.Counterpart
	defer peer.Stall()()
	stalled, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{}, 1)
	go func() {
		_, _ = p.Get(stalled, f.Planning(), process.Query{}) // cancelled
		rig.Signal(ended)
	}()
	select {
	case <-peer.Entered:
		cancel()
		return rig.Within(cancelTime, peer.Left), true
	case <-ended:
		return false, false
	}
}

// checkCapabilities compares the capabilities with the kinds.
func checkCapabilities(d pluginv1.Description, of testcase.Role) rig.Result {
	var lists bool
	for _, k := range d.Kinds {
		lists = lists || k.Kind == v1alpha1.KindReportTarget
	}
	if has := slices.Contains(d.Capabilities, pluginv1.CapabilityReport); of == testcase.Source && has != lists {
		return rig.Failed(rig.Finding{
			Clause: "P-40", Expected: "a source has the capability report and the kind ReportTarget, or neither",
			Got:   fmt.Sprintf("the capabilities are %q, and ReportTarget among the kinds: %v", strings.Join(d.Capabilities, " "), lists),
			Cause: "Report was added without its kind or its capability",
		})
	}
	return rig.Passed()
}
