// Package answers has the checks of what a plugin answers to its calls: descriptions, plans, claims, events, errors, objects.
package answers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Outcome is the check outcome.
func Outcome(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	plan, err := p.CallPlan(ctx, f.Planning())
	if f.Runner.Case.Refused() {
		return refusal(ctx, f, p, err)
	}
	if process.AboutClaims(err) {
		return rig.Skipped("the claims of Plan break the contract, see %s", rig.ClaimsName), nil
	}
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-19"), Expected: "Plan answers with changes, because expect.yaml has no errors",
			Got:   "Plan fails: " + process.Explained(err),
			Cause: process.CauseOf(err, "the plugin refuses the document, or root/ lacks what it needs"),
		}), nil
	}
	if got := checkPlan(f.Runner.Case, plan); got.Status != rig.Pass {
		return got, nil
	}
	system, err := belowUsr(f)
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	if process.ProtocolBroken(run.Err) {
		return rig.Skipped("the events of Apply break the protocol, see %s", rig.EventsName), nil
	}
	if got, err := checkUsr(f, system); got.Status != rig.Pass || err != nil {
		return got, err
	}
	if err := run.Failure(); err != nil {
		return rig.Failed(rig.Finding{
			Clause: process.ClauseOf(err, "P-21"), Expected: "Apply makes the changes of the plan and ends without an error",
			Got:   "Apply fails: " + process.Explained(err),
			Cause: process.CauseOf(err, "a change that needs more than Plan checked, or a file or directory that root/ does not have"),
		}), nil
	}
	if got, err := checkTree(f); got.Status != rig.Pass || err != nil {
		return got, err
	}
	return converged(ctx, f, p, run)
}

// belowUsr is what the image has in /usr.
func belowUsr(f *rig.Fixture) (trees.Tree, error) {
	all, err := trees.ReadTree(f.Root)
	maps.DeleteFunc(all, func(name string, _ trees.Entry) bool { return name != "usr" && !strings.HasPrefix(name, "usr/") })
	return all, err
}

// checkUsr compares /usr with what was there before Apply. Also expect/ is wrong when it has a change there.
func checkUsr(f *rig.Fixture, before trees.Tree) (rig.Result, error) {
	after, err := belowUsr(f)
	if err != nil {
		return rig.Result{}, err
	}
	if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true}); len(d) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "G-14", Expected: "no change below /usr", Got: "Apply changed something below /usr:" + trees.List(d),
			Cause: "a path of the plugin, or a link of root/ that the plugin follows: refuse it in Plan, with a final Precondition",
		}), nil
	}
	return rig.Passed(), nil
}

// refusal checks a document that Plan and Apply have to refuse, without a change.
func refusal(ctx context.Context, f *rig.Fixture, p *process.Plugin, planned error) (rig.Result, error) {
	if got := checkErrors(f.Runner.Case, "Plan", planned); got.Status != rig.Pass {
		return got, nil
	}
	before, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	run := p.CallApply(ctx, f.Applying(), 0, nil)
	if process.ProtocolBroken(run.Err) {
		return rig.Skipped("the events of Apply break the protocol, see %s", rig.EventsName), nil
	}
	if got := checkErrors(f.Runner.Case, "Apply", run.Failure()); got.Status != rig.Pass {
		return got, nil
	}
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true, Times: true}); len(d) > 0 {
		return rig.Failed(rig.Finding{
			Clause: "P-21", Expected: "no change, because Apply refuses the document",
			Got:   "Apply refused the document and changed something:" + trees.List(d),
			Cause: "Apply begins changes before it has planned all of them",
		}), nil
	}
	return rig.Passed(), nil
}

// checkErrors compares an answer with the errors that the case expects.
func checkErrors(c *testcase.Case, call string, answer error) rig.Result {
	var want, got []string
	for _, e := range c.Expect.Errors {
		want = append(want, strings.TrimSpace(e.Code+" "+e.Field))
	}
	slices.Sort(want)
	wrong := rig.Finding{
		Clause: "E-7", Expected: fmt.Sprintf("the errors %q of expect.yaml, and no others", want),
		Cause: process.CauseOf(answer, "the plugin does not check this field, or the violation has another code or path"),
	}
	e := process.ContractError(answer)
	switch {
	case answer == nil:
		wrong.Got = fmt.Sprintf("%s succeeds instead of answering %q", call, want)
		return rig.Failed(wrong)
	case e == nil:
		wrong.Got = fmt.Sprintf("%s answers %q instead of %q", call, answer, want)
		return rig.Failed(wrong)
	case len(e.Violations) == 0:
		got = []string{e.Code.String()}
	}
	for _, v := range e.Violations {
		got = append(got, strings.TrimSpace(e.Code.String()+" "+v.Field))
	}
	slices.Sort(got)
	if !slices.Equal(want, slices.Compact(got)) {
		wrong.Got = fmt.Sprintf("%s answers %q instead of %q (%v)", call, got, want, e)
		return rig.Failed(wrong)
	}
	return checkFinal(c, call, e)
}

// checkFinal compares final and the facts.
func checkFinal(c *testcase.Case, call string, e *pluginv1.Error) rig.Result {
	final := slices.ContainsFunc(c.Expect.Errors, func(e testcase.ExpectedError) bool { return e.Final })
	switch {
	case e.Final != final:
		return rig.Failed(rig.Finding{
			Clause: "E-10", Expected: fmt.Sprintf("final: %v, as in expect.yaml", final),
			Got:   fmt.Sprintf("%s answers %q with final: %v instead of %v", call, e.Code, e.Final, final),
			Cause: "final is true only if no other document can provide what is missing",
		})
	case c.Expect.Facts != nil && !maps.Equal(e.Facts, c.Expect.Facts):
		return rig.Failed(rig.Finding{
			Clause: "E-11", Expected: fmt.Sprintf("the facts %v of expect.yaml", c.Expect.Facts),
			Got:   fmt.Sprintf("%s answers %q with the facts %v instead of %v", call, e.Code, e.Facts, c.Expect.Facts),
			Cause: "the error is made without facts, or with others",
		})
	}
	return rig.Passed()
}

// checkPlan compares a first plan with what the case expects.
func checkPlan(c *testcase.Case, plan pluginv1.Plan) rig.Result {
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
		if strings.ContainsRune(change.Summary, '\n') {
			return rig.Failed(rig.Finding{
				Clause: "P-20", Expected: "the summary of a change is one line",
				Got: fmt.Sprintf("the summary of the change %q has more than one line", change.ID), Cause: "details in summary instead of diff",
			})
		}
	}
	want := c.Expect.Reboot
	if want == "" {
		want = pluginv1.RebootNone.String()
	}
	switch {
	case c.Expect.Changes != nil && !slices.Equal(ids, *c.Expect.Changes):
		return rig.Failed(rig.Finding{
			Clause: "P-19", Expected: fmt.Sprintf("the changes %q of expect.yaml, in this order", *c.Expect.Changes),
			Got:   fmt.Sprintf("the plan has the changes %q, expected are %q", ids, *c.Expect.Changes),
			Cause: "the plugin does not see that something matches already, orders the changes by a map, or has other ids",
		})
	case reboot.String() != want:
		return rig.Failed(rig.Finding{
			Clause: "P-26", Expected: fmt.Sprintf("the reboot %s of expect.yaml", want),
			Got:   fmt.Sprintf("the plan asks for the reboot %s, expected is %s", reboot, want),
			Cause: "reboot of a change is not set, or the expectation is missing in expect.yaml",
		})
	}
	return rig.Passed()
}

// checkTree compares the root with expect/.
func checkTree(f *rig.Fixture) (rig.Result, error) {
	want, err := f.Expected()
	if err != nil {
		return rig.Result{}, err
	}
	got, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	if d := trees.Differences(want.WithFiles(), got.WithFiles(), trees.Aspects{Modes: true}); len(d) > 0 {
		desired := func(name string) ([]byte, error) {
			return os.ReadFile(filepath.Join(f.Dir, "expect", filepath.FromSlash(name)))
		}
		return rig.Failed(rig.Finding{
			Clause: "P-21", Expected: "the tree of expect/, whole, with the modes 0755 and 0644, or as modes in expect.yaml has them",
			Got: "after Apply, the tree differs from expect/:" + trees.List(d) + f.FirstDifference(want, got, desired),
			Cause: "a change that Apply does not make or makes otherwise, or an expect/ that is not whole (without expect/, the " +
				"tree of root/ is expected)",
		}), nil
	}
	return rig.Passed(), nil
}

// converged checks what follows an Apply: a plan without changes, but for those that need the live machine, and an Apply
// that does nothing.
func converged(ctx context.Context, f *rig.Fixture, p *process.Plugin, run process.Applied) (rig.Result, error) {
	plan, err := p.CallPlan(ctx, f.Planning())
	if err != nil {
		return rig.Failed(rig.Finding{
			Clause: "G-9", Expected: "after Apply, Plan answers with no change", Got: fmt.Sprintf("after Apply, Plan fails: %v", err),
			Cause: process.CauseOf(err, "Plan does not accept what Apply wrote"),
		}), nil
	}
	var left []string
	for _, change := range plan.Changes {
		if !change.NeedsLive {
			return rig.Failed(rig.Finding{
				Clause: "G-9", Expected: "after Apply, Plan answers with no change, but those that need the live machine",
				Got: fmt.Sprintf("after Apply, Plan still wants %q: %s%s", change.ID, change.Summary, rig.Cut(change.Diff)),
				Cause: "Plan compares with something else than Apply writes, such as another mode, order or end of line; or the change " +
					"needs the live machine and lacks needs_live",
			}), nil
		}
		left = append(left, change.ID)
	}
	if !slices.Equal(left, run.Deferred()) {
		return rig.Failed(rig.Finding{
			Clause: "P-25", Expected: "finished lists as deferred the changes with needs_live, all of them, in the order of the plan",
			Got:   fmt.Sprintf("Apply deferred %q, and Plan then wants %q", run.Deferred(), left),
			Cause: "deferred of finished is not set, or a change is skipped without being listed",
		}), nil
	}
	before, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	wrong := rig.Finding{
		Clause: "P-21", Expected: "a second Apply plans again, finds nothing to do and does nothing",
		Cause: "Apply makes its changes without planning, or writes files that match already",
	}
	second := p.CallApply(ctx, f.Applying(), 0, nil)
	if err := second.Failure(); err != nil {
		wrong.Got = fmt.Sprintf("a second Apply fails: %v", err)
		return rig.Failed(wrong), nil
	}
	if again := second.Started(); len(again) > 0 {
		wrong.Got = fmt.Sprintf("a second Apply starts %q once more", again)
		return rig.Failed(wrong), nil
	}
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true, Times: true}); len(d) > 0 {
		wrong.Got = "a second Apply, which starts no change, writes:" + trees.List(d)
		return rig.Failed(wrong), nil
	}
	return rig.Passed(), nil
}
