package changes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/contract/conformance/internal/process"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
	"github.com/machineadm/machineadm/contract/conformance/internal/trees"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// PlanWritesNothing plans without a state directory, as a plan of the host, and with one, as an apply. What a source or a key
// provider reads is compared too.
func PlanWritesNothing(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	for _, r := range []pluginv1.Request{f.Planning(), f.Applying()} {
		before, err := everything(f, p)
		if err != nil {
			return rig.Result{}, err
		}
		if _, err := p.CallPlan(ctx, r); err != nil && process.ContractError(err) == nil {
			return rig.Result{}, err
		}
		after, err := everything(f, p)
		if err != nil {
			return rig.Result{}, err
		}
		if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true, Times: true}); len(d) > 0 {
			return rig.Failed(rig.Finding{
				Clause: p.Role.Harmless("G-6"), Expected: p.Role.Call() + " leaves every file as it is, with its times",
				Got: p.Role.Call() + " wrote:" + trees.List(d),
				Cause: "a file, a directory or a lock that is made while planning; make it in Apply, as a part of a change (with the " +
					"SDK: in the change's Do)",
			}), nil
		}
	}
	return rig.Passed(), nil
}

// everything reads what the kit has made for a plugin.
func everything(f *rig.Fixture, p *process.Plugin) (trees.Tree, error) {
	out, err := readTrees(f.Dir, p.Home)
	if err != nil || f.Runner.Counterpart == nil {
		return out, err
	}
	below, err := trees.ReadTree(f.Runner.Counterpart.Dir)
	for name, e := range below {
		out[path.Join("served", name)] = e
	}
	return out, err
}

// readTrees reads what is below a fixture's directory and below a plugin's home directory, under "home".
func readTrees(dir, home string, except ...string) (trees.Tree, error) {
	out, err := trees.ReadTree(dir, except...)
	if err != nil {
		return nil, err
	}
	below, err := trees.ReadTree(home)
	for name, e := range below {
		out[filepath.ToSlash(filepath.Join("home", name))] = e
	}
	return out, err
}

// EmptyRoot is the check empty-root.
func EmptyRoot(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	empty := filepath.Join(f.Dir, "empty")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Chmod(empty, 0o755)); err != nil {
		return rig.Result{}, err
	}
	r := f.Planning()
	r.Root, r.Target = empty, rig.TargetOf(empty)
	if d, err := p.CallDescribe(ctx, r, false); err == nil && d.Fitness == pluginv1.FitnessActive {
		return rig.Failed(rig.Finding{
			Clause: "P-12", Expected: "the fitness ABSENT, or INSTALLED for what every target has", Got: "on an empty root, the fitness is ACTIVE",
			Cause: "the fitness is a constant, or that of the machine on which the plugin runs",
		}), nil
	}
	_, err = p.CallPlan(ctx, r)
	allowed := []pluginv1.Code{pluginv1.CodePrecondition}
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if f.Runner.Case.RefusedWith(code) {
			allowed = append(allowed, code)
		}
	}
	if err == nil {
		return rig.Passed(), nil
	}
	if f.Runner.Unsettled && process.ClauseOf(err, "") != "" || process.AboutClaims(err) {
		return rig.Skipped("the answers of Plan break the contract, see %s and %s", rig.OutcomeName, rig.ClaimsName), nil
	}
	if w := process.WrongAnswer(err, allowed...); w != "" {
		return rig.Failed(rig.Finding{
			Clause: "G-8", Expected: "changes, or Precondition where something has to exist first",
			Got:   "on an empty root, Plan " + w,
			Cause: "a missing file or directory, /etc among them, is an error of the plugin instead of a state",
		}), nil
	}
	return rig.Passed(), nil
}

// otherOS is an operating system that no plugin serves.
const otherOS = "no-such-system"

// OtherTarget is the check other-target.
func OtherTarget(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	before, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	r := f.Applying()
	r.Target.OS, r.Target.Distribution, r.Target.Like = otherOS, otherOS, nil
	wrong := rig.Finding{
		Clause: "G-1", Expected: "Unsupported, and no change",
		Cause: "the plugin takes the operating system from the machine on which it runs, or does not check target.os",
	}
	_, err = p.CallPlan(ctx, r)
	if w := process.WrongAnswer(err, pluginv1.CodeUnsupported); w != "" {
		wrong.Got = "for another operating system, " + p.Role.Call() + " " + w
		return rig.Failed(wrong), nil
	}
	run := p.CallApply(ctx, r, 0, nil)
	if process.ProtocolBroken(run.Err) {
		return rig.Skipped("the events of Apply break the protocol, see %s", rig.EventsName), nil
	}
	if w := process.WrongAnswer(run.Failure(), pluginv1.CodeUnsupported); w != "" {
		wrong.Got = "for another operating system, Apply " + w
		return rig.Failed(wrong), nil
	}
	after, err := trees.ReadTree(f.Root)
	if err != nil {
		return rig.Result{}, err
	}
	if d := trees.Differences(before, after, trees.Aspects{Modes: true, Owners: true}); len(d) > 0 {
		wrong.Got = "for another operating system, Apply wrote:" + trees.List(d)
		return rig.Failed(wrong), nil
	}
	d, err := p.CallDescribe(ctx, r, false)
	if process.ClauseOf(err, "") != "" {
		return rig.Skipped("the answer of Describe breaks the contract, see describe"), nil
	}
	wrong.Clause, wrong.Expected = "P-12", "Describe answers with the fitness UNSUPPORTED"
	if err != nil {
		wrong.Got = fmt.Sprintf("for another operating system, Describe fails: %v", err)
		return rig.Failed(wrong), nil
	}
	if d.Fitness != pluginv1.FitnessUnsupported {
		wrong.Got = fmt.Sprintf("for another operating system, Describe answers the fitness %s", d.Fitness)
		return rig.Failed(wrong), nil
	}
	return rig.Passed(), nil
}

const largeBytes = 10 << 20

// LargeDocument is the check large-document.
func LargeDocument(ctx context.Context, f *rig.Fixture) (rig.Result, error) {
	p, err := f.Start(ctx)
	if err != nil {
		return rig.Result{}, err
	}
	doc, err := testcase.With(f.Runner.Document, strings.Repeat("x", largeBytes), []string{"spec"}, testcase.UnknownName)
	if err != nil {
		return rig.Result{}, err
	}
	_, err = p.CallPlan(ctx, rig.WithDocument(f.Planning(), doc))
	if err == nil {
		return rig.Passed(), nil // unknown-field reports it
	}
	if w := process.WrongAnswer(err, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition); w != "" {
		return rig.Failed(rig.Finding{
			Clause: "P-6", Expected: "an answer about the document, which is below the limit of 64 MiB",
			Got:   fmt.Sprintf("to a document of %d MiB, %s %s", largeBytes>>20, p.Role.Call(), w),
			Cause: "the server keeps gRPC's default limit of 4 MiB for received messages",
		}), nil
	}
	return rig.Passed(), nil
}
