package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

func outcome(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	plan, err := p.plan(ctx, b.planning())
	if b.trial.c.refused() {
		return b.refusal(ctx, p, err)
	}
	if aboutClaims(err) {
		return skipped("the claims of Plan break the contract, see %s", claimsName), nil
	}
	if err != nil {
		return failed("Plan fails: %v", err).of(clauseOf(err, "P-19")), nil
	}
	if f := b.trial.c.judgePlan(plan); f.verdict != Pass {
		return f, nil
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if err := run.failure(); err != nil {
		return failed("Apply fails: %v", err).of(clauseOf(err, "P-21")), nil
	}
	if f, err := b.judgeTree(); f != "" || err != nil {
		return failed("%s", f).of("P-21"), err
	}
	return b.converged(ctx, p, run)
}

// refusal judges a document that is to be refused, by Plan and by Apply, which changes nothing.
func (b *bench) refusal(ctx context.Context, p *plugin, planned error) (finding, error) {
	if f := b.trial.c.judgeErrors(planned); f != "" {
		return failed("Plan %s", f).of("E-7"), nil
	}
	before, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if f := b.trial.c.judgeErrors(run.failure()); f != "" {
		return failed("Apply %s", f).of("E-7"), nil
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed("Apply refused the document and changed something all the same:%s", list(d)).of("P-21"), nil
	}
	return passed(), nil
}

// judgeErrors compares an answer with the errors that the case expects.
func (c *Case) judgeErrors(answer error) string {
	var want, got []string
	for _, e := range c.expect.Errors {
		want = append(want, strings.TrimSpace(e.Code+" "+e.Field))
	}
	e := contractError(answer)
	switch {
	case answer == nil:
		return fmt.Sprintf("succeeds instead of answering %q", want)
	case e == nil:
		return fmt.Sprintf("answers %q instead of %q", answer, want)
	case len(e.Violations) == 0:
		got = []string{e.Code.String()}
	}
	for _, v := range e.Violations {
		got = append(got, strings.TrimSpace(e.Code.String()+" "+v.Field))
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(want, slices.Compact(got)) {
		return fmt.Sprintf("answers %q instead of %q (%v)", got, want, e)
	}
	return c.judgeFinal(e)
}

// judgeFinal compares what the case says of final and of facts.
func (c *Case) judgeFinal(e *pluginv1.Error) string {
	final := slices.ContainsFunc(c.expect.Errors, func(e expectedError) bool { return e.Final })
	switch {
	case e.Final != final:
		return fmt.Sprintf("answers %q with final: %v instead of %v", e.Code, e.Final, final)
	case c.expect.Facts != nil && !maps.Equal(e.Facts, c.expect.Facts):
		return fmt.Sprintf("answers %q with the facts %v instead of %v", e.Code, e.Facts, c.expect.Facts)
	}
	return ""
}

// judgePlan compares a first plan with what the case expects.
func (c *Case) judgePlan(plan pluginv1.Plan) finding {
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
		if strings.ContainsRune(change.Summary, '\n') {
			return failed("the summary of the change %q has more than one line", change.ID).of("P-20")
		}
	}
	want := c.expect.Reboot
	if want == "" {
		want = pluginv1.RebootNone.String()
	}
	switch {
	case c.expect.Changes != nil && !slices.Equal(ids, *c.expect.Changes):
		return failed("the plan has the changes %q, expected are %q", ids, *c.expect.Changes).of("P-19")
	case reboot.String() != want:
		return failed("the plan asks for the reboot %s, expected is %s", reboot, want).of("P-26")
	}
	return passed()
}

// judgeTree compares the root with expect/.
func (b *bench) judgeTree() (string, error) {
	want, err := b.expected()
	if err != nil {
		return "", err
	}
	got, err := readTree(b.root)
	if err != nil {
		return "", err
	}
	if d := differences(want.withFiles(), got.withFiles(), aspects{modes: true}); len(d) > 0 {
		shall := func(name string) ([]byte, error) {
			return os.ReadFile(filepath.Join(b.dir, "expect", filepath.FromSlash(name)))
		}
		return "after Apply, the tree is not that of expect/:" + list(d) + b.firstDifference(want, got, shall), nil
	}
	return "", nil
}

// converged judges what comes after an Apply: an empty plan, but for what an image cannot do, and an Apply that does nothing.
func (b *bench) converged(ctx context.Context, p *plugin, run applied) (finding, error) {
	plan, err := p.plan(ctx, b.planning())
	if err != nil {
		return failed("after Apply, Plan fails: %v", err).of("G-9"), nil
	}
	var left []string
	for _, change := range plan.Changes {
		if !change.NeedsLive {
			return failed("after Apply, Plan still wants %q: %s%s", change.ID, change.Summary, cut(change.Diff)).of("G-9"), nil
		}
		left = append(left, change.ID)
	}
	if !slices.Equal(left, run.deferred()) {
		return failed("Apply deferred %q, and Plan then wants %q", run.deferred(), left).of("P-25"), nil
	}
	before, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	second := p.apply(ctx, b.applying(), 0, nil)
	if err := second.failure(); err != nil {
		return failed("a second Apply fails: %v", err).of("P-21"), nil
	}
	if again := second.started(); len(again) > 0 {
		return failed("a second Apply starts %q once more", again).of("P-21"), nil
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed("a second Apply, which starts no change, writes:%s", list(d)).of("P-21"), nil
	}
	return passed(), nil
}
