package conformance

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/document"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

func unknownField(ctx context.Context, b *bench) (finding, error) {
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if b.trial.c.refusedWith(code) {
			return skipped("the document is refused with %s as it is", code), nil
		}
	}
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	for _, parents := range [][]string{{"spec"}, {"spec", "providerConfig"}} {
		doc, err := with(b.trial.document, true, parents, unknownName)
		if err != nil {
			continue // providerConfig is no mapping here
		}
		path := document.Path(strings.Join(append(slices.Clone(parents), unknownName), "."))
		allowed := []string{string(path)}
		if len(parents) > 1 { // a kind may have no providerConfig at all
			allowed = append(allowed, "spec.providerConfig")
		}
		_, err = p.plan(ctx, clone(b.planning(), doc))
		if f := wrongAnswer(err, pluginv1.CodeInvalidConfig); f != "" {
			return failed("with the unknown field %s, Plan %s", path, f).of("G-2"), nil
		}
		if e := contractError(err); !slices.ContainsFunc(e.Violations, func(v document.Violation) bool {
			return slices.Contains(allowed, v.Field)
		}) {
			return failed("with the unknown field %s, no violation of Plan's answer names it: %v", path, e), nil
		}
	}
	return passed(), nil
}

// planWritesNothing asks as a plan of the runtime does, without a state directory, and as an apply does, with one.
func planWritesNothing(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	for _, r := range []pluginv1.Request{b.planning(), b.applying()} {
		before, err := readTree(b.dir)
		if err != nil {
			return finding{}, err
		}
		if _, err := p.plan(ctx, r); err != nil && contractError(err) == nil {
			return finding{}, err
		}
		after, err := readTree(b.dir)
		if err != nil {
			return finding{}, err
		}
		if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
			return failed("Plan wrote:%s\nmake it in Apply, as a part of a change (with the SDK: in the change's Do), "+
				"and let Plan look only", list(d)), nil
		}
	}
	return passed(), nil
}

func emptyRoot(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	empty := filepath.Join(b.dir, "empty")
	if err := errors.Join(os.Mkdir(empty, 0o700), os.Chmod(empty, 0o755)); err != nil {
		return finding{}, err
	}
	r := b.planning()
	r.Root, r.Target = empty, targetOf(empty)
	_, err = p.plan(ctx, r)
	allowed := []pluginv1.Code{pluginv1.CodePrecondition}
	for _, code := range []pluginv1.Code{pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported} {
		if b.trial.c.refusedWith(code) {
			allowed = append(allowed, code)
		}
	}
	if err == nil {
		return passed(), nil
	}
	if b.trial.unsettled && clauseOf(err, "") != "" || aboutClaims(err) {
		return skipped("the answers of Plan break the contract, see %s and %s", outcomeName, claimsName), nil
	}
	if f := wrongAnswer(err, allowed...); f != "" {
		return failed("on an empty root, Plan %s", f), nil
	}
	return passed(), nil
}

// otherOS is an operating system that no plugin serves.
const otherOS = "no-such-system"

func otherTarget(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	before, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	r := b.applying()
	r.Target.OS, r.Target.Distribution, r.Target.Like = otherOS, otherOS, nil
	_, err = p.plan(ctx, r)
	if f := wrongAnswer(err, pluginv1.CodeUnsupported); f != "" {
		return failed("for another operating system, Plan %s", f).of("G-1"), nil
	}
	run := p.apply(ctx, r, 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if f := wrongAnswer(run.failure(), pluginv1.CodeUnsupported); f != "" {
		return failed("for another operating system, Apply %s", f).of("G-1"), nil
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true}); len(d) > 0 {
		return failed("for another operating system, Apply wrote:%s", list(d)).of("G-1"), nil
	}
	d, err := p.describe(ctx, r)
	switch {
	case clauseOf(err, "") != "":
		return skipped("the answer of Describe breaks the contract, see describe"), nil
	case err != nil:
		return failed("for another operating system, Describe fails: %v", err).of("P-12"), nil
	case d.Fitness != pluginv1.FitnessUnsupported:
		return failed("for another operating system, Describe answers the fitness %s", d.Fitness).of("P-12"), nil
	}
	return passed(), nil
}

const largeBytes = 10 << 20

func largeDocument(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	doc, err := with(b.trial.document, strings.Repeat("x", largeBytes), []string{"spec"}, unknownName)
	if err != nil {
		return finding{}, err
	}
	_, err = p.plan(ctx, clone(b.planning(), doc))
	if err == nil {
		return passed(), nil // what it thinks of the unknown field is another check's
	}
	if f := wrongAnswer(err, pluginv1.CodeInvalidConfig, pluginv1.CodeUnsupported, pluginv1.CodePrecondition); f != "" {
		return failed("to a document of %d MiB, Plan %s", largeBytes>>20, f), nil
	}
	return passed(), nil
}
