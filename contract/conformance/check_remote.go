package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/contract/pluginv1"
	"github.com/machineadm/machineadm/contract/v1alpha1"
)

// object gets the object or the passphrase twice.
func object(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	var last []byte
	for try := range 2 {
		got, err := p.get(ctx, f.planning(), query{})
		switch {
		case errors.As(err, new(*crash)):
			return result{}, err
		case f.runner.c.refused():
			return f.runner.c.checkErrors(p.role.call(), err), nil
		case err != nil:
			return failed(finding{
				clause: clauseOf(err, p.role.answer()), expected: p.role.call() + " succeeds, because expect.yaml has no errors",
				got:   fmt.Sprintf("%s fails: %v", p.role.call(), err),
				cause: causeOf(err, "the plugin refuses the document, or its counterpart has no such object"),
			}), nil
		}
		wrong, err := f.runner.wanted(got)
		if err != nil {
			return result{}, err
		}
		if try > 0 && !bytes.Equal(got, last) {
			wrong = "it differs from the one of the call before"
		}
		if wrong != "" {
			return failed(finding{
				clause: p.role.answer(), expected: "the bytes as they are kept, the same each time",
				got:   fmt.Sprintf("%s answers %d bytes, and %s", p.role.call(), len(got), wrong),
				cause: "a conversion of text, a line feed that is added or removed, a part that is lost, or an expectation that is wrong",
			}), nil
		}
		last = got
	}
	return passed(), nil
}

// maxBytes fetches with limits of exactly the size of the object, and of a byte less.
func maxBytes(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	whole, err := p.get(ctx, f.planning(), query{})
	if err != nil || len(whole) < 2 || f.runner.unsettled {
		return skipped("the case has no object of two bytes or more, see %s", objectName), nil //nolint:nilerr // that check reports it
	}
	wrong := finding{
		clause: "P-42", expected: "an object of max_bytes is fetched, and of a larger one no more than max_bytes, with a final Precondition",
		cause: "the size is not counted, is counted before it is received, or the comparison is off by one",
	}
	size := int64(len(whole))
	if _, err := p.get(ctx, f.planning(), query{most: size}); err != nil {
		wrong.got = fmt.Sprintf("with max_bytes of exactly the size of the object, Fetch fails: %v", err)
		return failed(wrong), nil
	}
	_, err = p.get(ctx, f.planning(), query{most: size - 1})
	if w := wrongAnswer(err, pluginv1.CodePrecondition); w != "" {
		wrong.got = "with max_bytes of one byte less than the object has, Fetch " + w
		return failed(wrong), nil
	}
	if !contractError(err).Final {
		wrong.got = "with max_bytes of one byte less than the object has, Fetch answers a Precondition that is not final"
		return failed(wrong), nil
	}
	return passed(), nil
}

// validateOnly validates the document, as Fetch or Passphrase and, with the capability, as Report.
func validateOnly(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	c, r := f.runner.c, f.planning()
	d, err := p.describe(ctx, r, false)
	if err != nil {
		return skipped("Describe fails, see describe"), nil //nolint:nilerr // that check reports it
	}
	seen := f.runner.counterpart.seen.Load()
	_, err = p.get(ctx, r, query{validateOnly: true})
	switch {
	case errors.As(err, new(*crash)):
		return result{}, err
	case c.refusedWith(pluginv1.CodeInvalidConfig):
		if got := c.checkErrors(p.role.call()+" with validate_only", err); got.status != Pass {
			got.clause = "P-43"
			return got, nil
		}
	case err != nil && (clauseOf(err, "") != "" || wrongAnswer(err, pluginv1.CodeUnsupported) != ""):
		return failed(finding{
			clause: "P-43", expected: "with validate_only, a valid document is answered without an error, a part or a passphrase",
			got:   fmt.Sprintf("with validate_only, %s fails: %v", p.role.call(), err),
			cause: causeOf(err, "the plugin continues after it has validated the document"),
		}), nil
	}
	if slices.Contains(d.Capabilities, pluginv1.CapabilityReport) && p.role == source {
		err := p.Report(ctx, pluginv1.ReportRequest{Document: r.Document, Target: r.Target, ValidateOnly: true})
		if w := wrongAnswer(err, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported); err != nil && w != "" {
			return failed(finding{
				clause: "P-43", expected: "Report with validate_only succeeds, or refuses the document",
				got: "Report with validate_only " + w, cause: causeOf(err, "the plugin continues after it has validated the document"),
			}), nil
		}
	}
	if f.runner.counterpart.seen.Load() > seen {
		return failed(finding{
			clause: "P-43", expected: "validate_only makes no connection", got: "with validate_only, the plugin connects to ${server}",
			cause: "the plugin looks whether the object exists; a document is validated where there is no network",
		}), nil
	}
	return passed(), nil
}

// cancelTime is how soon a cancelled call ends, in the plugin too.
const cancelTime = 5 * time.Second

// cancels cancels a call in which the counterpart does not answer, or at its first part, and then makes a whole one.
func cancels(ctx context.Context, f *fixture) (result, error) {
	if f.runner.c.refused() {
		return skipped("the document is refused"), nil
	}
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	wrong := finding{
		clause: "P-29", expected: fmt.Sprintf("a call that is cancelled ends within %s, and the next one is answered", cancelTime),
		cause: "the context of the call does not reach its requests, or a lock is not released",
	}
	if bytes.Contains(f.runner.c.config, []byte("${server}")) {
		over, asked := f.cancelStalled(ctx, p)
		if asked && !over {
			wrong.got = fmt.Sprintf("%s was cancelled, and its request to ${server} was still open after %s", p.role.call(), cancelTime)
			return failed(wrong), nil
		}
	} else {
		short, cancel := context.WithCancel(ctx)
		if p.role == keyProvider {
			cancel()
		}
		_, _ = p.get(short, f.planning(), query{begun: cancel}) // the object can be too short for a cancelled call
		cancel()
	}
	if _, err := p.get(ctx, f.planning(), query{}); err != nil {
		if errors.As(err, new(*crash)) {
			return result{}, err
		}
		wrong.got = fmt.Sprintf("after a call that was cancelled, %s fails: %v", p.role.call(), err)
		return failed(wrong), nil
	}
	return passed(), nil
}

// cancelStalled cancels a call once ${server} was asked, and reports whether the plugin ended its request, and whether it
// made one.
func (f *fixture) cancelStalled(ctx context.Context, p *plugin) (over, asked bool) {
	peer := f.runner.counterpart
	defer peer.stall()()
	stalled, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan struct{}, 1)
	go func() {
		_, _ = p.get(stalled, f.planning(), query{}) // cancelled
		signal(ended)
	}()
	select {
	case <-peer.entered:
		cancel()
		return within(cancelTime, peer.left), true
	case <-ended:
		return false, false
	}
}

// checkCapabilities compares the capabilities with the kinds.
func checkCapabilities(d pluginv1.Description, of role) result {
	var lists bool
	for _, k := range d.Kinds {
		lists = lists || k.Kind == v1alpha1.KindReportTarget
	}
	if has := slices.Contains(d.Capabilities, pluginv1.CapabilityReport); of == source && has != lists {
		return failed(finding{
			clause: "P-40", expected: "a source has the capability report and the kind ReportTarget, or neither",
			got:   fmt.Sprintf("the capabilities are %q, and ReportTarget among the kinds: %v", strings.Join(d.Capabilities, " "), lists),
			cause: "Report was added without its kind or its capability",
		})
	}
	return passed()
}
