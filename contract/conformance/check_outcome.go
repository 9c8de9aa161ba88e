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

func outcome(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	plan, err := p.plan(ctx, f.planning())
	if f.runner.c.refused() {
		return f.refusal(ctx, p, err)
	}
	if aboutClaims(err) {
		return skipped("the claims of Plan break the contract, see %s", claimsName), nil
	}
	if err != nil {
		return failed(finding{
			clause: clauseOf(err, "P-19"), expected: "Plan answers with changes, because expect.yaml has no errors",
			got:   "Plan fails: " + explained(err),
			cause: causeOf(err, "the plugin refuses the document, or root/ lacks what it needs"),
		}), nil
	}
	if got := f.runner.c.checkPlan(plan); got.status != Pass {
		return got, nil
	}
	system, err := f.belowUsr()
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if got, err := f.checkUsr(system); got.status != Pass || err != nil {
		return got, err
	}
	if err := run.failure(); err != nil {
		return failed(finding{
			clause: clauseOf(err, "P-21"), expected: "Apply makes the changes of the plan and ends without an error",
			got:   "Apply fails: " + explained(err),
			cause: causeOf(err, "a change that needs more than Plan checked, or a file or directory that root/ does not have"),
		}), nil
	}
	if got, err := f.checkTree(); got.status != Pass || err != nil {
		return got, err
	}
	return f.converged(ctx, p, run)
}

// belowUsr is what the image has in /usr.
func (f *fixture) belowUsr() (tree, error) {
	all, err := readTree(f.root)
	maps.DeleteFunc(all, func(name string, _ entry) bool { return name != "usr" && !strings.HasPrefix(name, "usr/") })
	return all, err
}

// checkUsr compares /usr with what was there before Apply. Also expect/ is wrong when it has a change there.
func (f *fixture) checkUsr(before tree) (result, error) {
	after, err := f.belowUsr()
	if err != nil {
		return result{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true}); len(d) > 0 {
		return failed(finding{
			clause: "G-14", expected: "no change below /usr", got: "Apply changed something below /usr:" + list(d),
			cause: "a path of the plugin, or a link of root/ that the plugin follows: refuse it in Plan, with a final Precondition",
		}), nil
	}
	return passed(), nil
}

// refusal checks a document that Plan and Apply have to refuse, without a change.
func (f *fixture) refusal(ctx context.Context, p *plugin, planned error) (result, error) {
	if got := f.runner.c.checkErrors("Plan", planned); got.status != Pass {
		return got, nil
	}
	before, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	run := p.apply(ctx, f.applying(), 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if got := f.runner.c.checkErrors("Apply", run.failure()); got.status != Pass {
		return got, nil
	}
	after, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed(finding{
			clause: "P-21", expected: "no change, because Apply refuses the document",
			got:   "Apply refused the document and changed something:" + list(d),
			cause: "Apply begins changes before it has planned all of them",
		}), nil
	}
	return passed(), nil
}

// checkErrors compares an answer with the errors that the case expects.
func (c *Case) checkErrors(call string, answer error) result {
	var want, got []string
	for _, e := range c.expect.Errors {
		want = append(want, strings.TrimSpace(e.Code+" "+e.Field))
	}
	slices.Sort(want)
	wrong := finding{
		clause: "E-7", expected: fmt.Sprintf("the errors %q of expect.yaml, and no others", want),
		cause: causeOf(answer, "the plugin does not check this field, or the violation has another code or path"),
	}
	e := contractError(answer)
	switch {
	case answer == nil:
		wrong.got = fmt.Sprintf("%s succeeds instead of answering %q", call, want)
		return failed(wrong)
	case e == nil:
		wrong.got = fmt.Sprintf("%s answers %q instead of %q", call, answer, want)
		return failed(wrong)
	case len(e.Violations) == 0:
		got = []string{e.Code.String()}
	}
	for _, v := range e.Violations {
		got = append(got, strings.TrimSpace(e.Code.String()+" "+v.Field))
	}
	slices.Sort(got)
	if !slices.Equal(want, slices.Compact(got)) {
		wrong.got = fmt.Sprintf("%s answers %q instead of %q (%v)", call, got, want, e)
		return failed(wrong)
	}
	return c.checkFinal(call, e)
}

// checkFinal compares final and the facts.
func (c *Case) checkFinal(call string, e *pluginv1.Error) result {
	final := slices.ContainsFunc(c.expect.Errors, func(e expectedError) bool { return e.Final })
	switch {
	case e.Final != final:
		return failed(finding{
			clause: "E-10", expected: fmt.Sprintf("final: %v, as in expect.yaml", final),
			got:   fmt.Sprintf("%s answers %q with final: %v instead of %v", call, e.Code, e.Final, final),
			cause: "final is true only if no other document can provide what is missing",
		})
	case c.expect.Facts != nil && !maps.Equal(e.Facts, c.expect.Facts):
		return failed(finding{
			clause: "E-11", expected: fmt.Sprintf("the facts %v of expect.yaml", c.expect.Facts),
			got:   fmt.Sprintf("%s answers %q with the facts %v instead of %v", call, e.Code, e.Facts, c.expect.Facts),
			cause: "the error is made without facts, or with others",
		})
	}
	return passed()
}

// checkPlan compares a first plan with what the case expects.
func (c *Case) checkPlan(plan pluginv1.Plan) result {
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
		if strings.ContainsRune(change.Summary, '\n') {
			return failed(finding{
				clause: "P-20", expected: "the summary of a change is one line",
				got: fmt.Sprintf("the summary of the change %q has more than one line", change.ID), cause: "details in summary instead of diff",
			})
		}
	}
	want := c.expect.Reboot
	if want == "" {
		want = pluginv1.RebootNone.String()
	}
	switch {
	case c.expect.Changes != nil && !slices.Equal(ids, *c.expect.Changes):
		return failed(finding{
			clause: "P-19", expected: fmt.Sprintf("the changes %q of expect.yaml, in this order", *c.expect.Changes),
			got:   fmt.Sprintf("the plan has the changes %q, expected are %q", ids, *c.expect.Changes),
			cause: "the plugin does not see that something matches already, orders the changes by a map, or has other ids",
		})
	case reboot.String() != want:
		return failed(finding{
			clause: "P-26", expected: fmt.Sprintf("the reboot %s of expect.yaml", want),
			got:   fmt.Sprintf("the plan asks for the reboot %s, expected is %s", reboot, want),
			cause: "reboot of a change is not set, or the expectation is missing in expect.yaml",
		})
	}
	return passed()
}

// checkTree compares the root with expect/.
func (f *fixture) checkTree() (result, error) {
	want, err := f.expected()
	if err != nil {
		return result{}, err
	}
	got, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	if d := differences(want.withFiles(), got.withFiles(), aspects{modes: true}); len(d) > 0 {
		desired := func(name string) ([]byte, error) {
			return os.ReadFile(filepath.Join(f.dir, "expect", filepath.FromSlash(name)))
		}
		return failed(finding{
			clause: "P-21", expected: "the tree of expect/, whole, with the modes 0755 and 0644, or as modes in expect.yaml has them",
			got: "after Apply, the tree differs from expect/:" + list(d) + f.firstDifference(want, got, desired),
			cause: "a change that Apply does not make or makes otherwise, or an expect/ that is not whole (without expect/, the " +
				"tree of root/ is expected)",
		}), nil
	}
	return passed(), nil
}

// converged checks what follows an Apply: a plan without changes, but for those that need the live machine, and an Apply
// that does nothing.
func (f *fixture) converged(ctx context.Context, p *plugin, run applied) (result, error) {
	plan, err := p.plan(ctx, f.planning())
	if err != nil {
		return failed(finding{
			clause: "G-9", expected: "after Apply, Plan answers with no change", got: fmt.Sprintf("after Apply, Plan fails: %v", err),
			cause: causeOf(err, "Plan does not accept what Apply wrote"),
		}), nil
	}
	var left []string
	for _, change := range plan.Changes {
		if !change.NeedsLive {
			return failed(finding{
				clause: "G-9", expected: "after Apply, Plan answers with no change, but those that need the live machine",
				got: fmt.Sprintf("after Apply, Plan still wants %q: %s%s", change.ID, change.Summary, cut(change.Diff)),
				cause: "Plan compares with something else than Apply writes, such as another mode, order or end of line; or the change " +
					"needs the live machine and lacks needs_live",
			}), nil
		}
		left = append(left, change.ID)
	}
	if !slices.Equal(left, run.deferred()) {
		return failed(finding{
			clause: "P-25", expected: "finished lists as deferred the changes with needs_live, all of them, in the order of the plan",
			got:   fmt.Sprintf("Apply deferred %q, and Plan then wants %q", run.deferred(), left),
			cause: "deferred of finished is not set, or a change is skipped without being listed",
		}), nil
	}
	before, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	wrong := finding{
		clause: "P-21", expected: "a second Apply plans again, finds nothing to do and does nothing",
		cause: "Apply makes its changes without planning, or writes files that match already",
	}
	second := p.apply(ctx, f.applying(), 0, nil)
	if err := second.failure(); err != nil {
		wrong.got = fmt.Sprintf("a second Apply fails: %v", err)
		return failed(wrong), nil
	}
	if again := second.started(); len(again) > 0 {
		wrong.got = fmt.Sprintf("a second Apply starts %q once more", again)
		return failed(wrong), nil
	}
	after, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		wrong.got = "a second Apply, which starts no change, writes:" + list(d)
		return failed(wrong), nil
	}
	return passed(), nil
}
