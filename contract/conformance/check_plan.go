package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// planWritesNothing plans without a state directory, as a plan of the host, and with one, as an apply. What a source or a key
// provider reads is compared too.
func planWritesNothing(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	for _, r := range []pluginv1.Request{f.planning(), f.applying()} {
		before, err := f.everything(p)
		if err != nil {
			return result{}, err
		}
		if _, err := p.plan(ctx, r); err != nil && contractError(err) == nil {
			return result{}, err
		}
		after, err := f.everything(p)
		if err != nil {
			return result{}, err
		}
		if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
			return failed(finding{
				clause: p.role.harmless("G-6"), expected: p.role.call() + " leaves every file as it is, with its times",
				got: p.role.call() + " wrote:" + list(d),
				cause: "a file, a directory or a lock that is made while planning; make it in Apply, as a part of a change (with the " +
					"SDK: in the change's Do)",
			}), nil
		}
	}
	return passed(), nil
}

// everything reads what the kit has made for a plugin.
func (f *fixture) everything(p *plugin) (tree, error) {
	out, err := readTrees(f.dir, p.home)
	if err != nil || f.runner.counterpart == nil {
		return out, err
	}
	below, err := readTree(f.runner.counterpart.dir)
	for name, e := range below {
		out[path.Join("served", name)] = e
	}
	return out, err
}

// readTrees reads what is below a fixture's directory and below a plugin's home directory, under "home".
func readTrees(dir, home string, except ...string) (tree, error) {
	out, err := readTree(dir, except...)
	if err != nil {
		return nil, err
	}
	below, err := readTree(home)
	for name, e := range below {
		out[filepath.ToSlash(filepath.Join("home", name))] = e
	}
	return out, err
}

func emptyRoot(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	empty := filepath.Join(f.dir, "empty")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Chmod(empty, 0o755)); err != nil {
		return result{}, err
	}
	r := f.planning()
	r.Root, r.Target = empty, targetOf(empty)
	if d, err := p.describe(ctx, r, false); err == nil && d.Fitness == pluginv1.FitnessActive {
		return failed(finding{
			clause: "P-12", expected: "the fitness ABSENT, or INSTALLED for what every target has", got: "on an empty root, the fitness is ACTIVE",
			cause: "the fitness is a constant, or that of the machine on which the plugin runs",
		}), nil
	}
	_, err = p.plan(ctx, r)
	allowed := []pluginv1.Code{pluginv1.CodePrecondition}
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if f.runner.c.refusedWith(code) {
			allowed = append(allowed, code)
		}
	}
	if err == nil {
		return passed(), nil
	}
	if f.runner.unsettled && clauseOf(err, "") != "" || aboutClaims(err) {
		return skipped("the answers of Plan break the contract, see %s and %s", outcomeName, claimsName), nil
	}
	if w := wrongAnswer(err, allowed...); w != "" {
		return failed(finding{
			clause: "G-8", expected: "changes, or Precondition where something has to exist first",
			got:   "on an empty root, Plan " + w,
			cause: "a missing file or directory, /etc among them, is an error of the plugin instead of a state",
		}), nil
	}
	return passed(), nil
}

// otherOS is an operating system that no plugin serves.
const otherOS = "no-such-system"

func otherTarget(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	before, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	r := f.applying()
	r.Target.OS, r.Target.Distribution, r.Target.Like = otherOS, otherOS, nil
	wrong := finding{
		clause: "G-1", expected: "Unsupported, and no change",
		cause: "the plugin takes the operating system from the machine on which it runs, or does not check target.os",
	}
	_, err = p.plan(ctx, r)
	if w := wrongAnswer(err, pluginv1.CodeUnsupported); w != "" {
		wrong.got = "for another operating system, " + p.role.call() + " " + w
		return failed(wrong), nil
	}
	run := p.apply(ctx, r, 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if w := wrongAnswer(run.failure(), pluginv1.CodeUnsupported); w != "" {
		wrong.got = "for another operating system, Apply " + w
		return failed(wrong), nil
	}
	after, err := readTree(f.root)
	if err != nil {
		return result{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true}); len(d) > 0 {
		wrong.got = "for another operating system, Apply wrote:" + list(d)
		return failed(wrong), nil
	}
	d, err := p.describe(ctx, r, false)
	if clauseOf(err, "") != "" {
		return skipped("the answer of Describe breaks the contract, see describe"), nil
	}
	wrong.clause, wrong.expected = "P-12", "Describe answers with the fitness UNSUPPORTED"
	if err != nil {
		wrong.got = fmt.Sprintf("for another operating system, Describe fails: %v", err)
		return failed(wrong), nil
	}
	if d.Fitness != pluginv1.FitnessUnsupported {
		wrong.got = fmt.Sprintf("for another operating system, Describe answers the fitness %s", d.Fitness)
		return failed(wrong), nil
	}
	return passed(), nil
}

const largeBytes = 10 << 20

func largeDocument(ctx context.Context, f *fixture) (result, error) {
	p, err := f.start(ctx)
	if err != nil {
		return result{}, err
	}
	doc, err := with(f.runner.document, strings.Repeat("x", largeBytes), []string{"spec"}, unknownName)
	if err != nil {
		return result{}, err
	}
	_, err = p.plan(ctx, withDocument(f.planning(), doc))
	if err == nil {
		return passed(), nil // unknown-field reports it
	}
	if w := wrongAnswer(err, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition); w != "" {
		return failed(finding{
			clause: "P-6", expected: "an answer about the document, which is below the limit of 64 MiB",
			got:   fmt.Sprintf("to a document of %d MiB, %s %s", largeBytes>>20, p.role.call(), w),
			cause: "the server keeps gRPC's default limit of 4 MiB for received messages",
		}), nil
	}
	return passed(), nil
}
