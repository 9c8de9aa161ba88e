package conformance

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/naming"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

func describes(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	d, err := p.describe(ctx, b.planning())
	if err != nil {
		return failed("Describe fails: %v", err), nil
	}
	header, err := b.trial.header()
	if err != nil {
		return finding{}, err
	}
	kind, serves := d.Serves(header.apiVersion, header.kind)
	binary, _ := naming.Trim(runtime.GOOS, filepath.Base(b.trial.binary))
	switch {
	case trouble(naming.ValidProvider(d.Name)) != "":
		return failed("the name %q is no provider's name", d.Name), nil
	case binary != "" && !strings.HasSuffix(binary, "-"+d.Name):
		return failed("the name is %q, but the binary is called %s", d.Name, binary), nil
	case d.Version == "":
		return failed("the version is empty"), nil
	case d.Fitness == pluginv1.FitnessUnspecified:
		return failed("it does not say how the plugin fits"), nil
	case !serves && !b.trial.c.refusedWith(pluginv1.CodeUnsupported):
		return failed("it does not list the kind %s of %s", header.kind, header.apiVersion), nil
	case serves && kind.Phase == pluginv1.PhaseUnspecified:
		return failed("the kind %s has no phase", header.kind), nil
	}
	return passed(), nil
}

type header struct{ apiVersion, kind string }

func (t *trial) header() (header, error) {
	root, err := parse(t.document)
	if err != nil {
		return header{}, err
	}
	version, _ := root["apiVersion"].(string)
	kind, _ := root["kind"].(string)
	return header{version, kind}, nil
}

func outcome(ctx context.Context, b *bench) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	plan, err := p.plan(ctx, b.planning())
	if b.trial.c.refused() {
		return b.refusal(ctx, p, err)
	}
	if err != nil {
		return failed("Plan fails: %v", err), nil
	}
	if f := b.trial.c.judgePlan(plan); f != "" {
		return failed("%s", f), nil
	}
	run := p.apply(ctx, b.applying(), 0, nil)
	if protocolBroken(run.err) {
		return skipped("the events of Apply break the protocol, see %s", eventsName), nil
	}
	if err := run.failure(); err != nil {
		return failed("Apply fails: %v", err), nil
	}
	if f, err := b.judgeTree(); f != "" || err != nil {
		return failed("%s", f), err
	}
	return b.converged(ctx, p, run)
}

// refusal judges a document that is to be refused, by Plan and by Apply, which changes nothing.
func (b *bench) refusal(ctx context.Context, p *plugin, planned error) (finding, error) {
	if f := b.trial.c.judgeErrors(planned); f != "" {
		return failed("Plan %s", f), nil
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
		return failed("Apply %s", f), nil
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed("Apply refused the document and changed something all the same:%s", list(d)), nil
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
	return ""
}

// judgePlan compares a first plan with what the case expects.
func (c *Case) judgePlan(plan pluginv1.Plan) string {
	ids, reboot := []string{}, pluginv1.RebootNone
	for _, change := range plan.Changes {
		ids, reboot = append(ids, change.ID), max(reboot, change.Reboot)
		if change.ID == "" || change.Summary == "" || strings.ContainsRune(change.Summary, '\n') {
			return "a planned change has no ID, or not one line of summary"
		}
	}
	want := c.expect.Reboot
	if want == "" {
		want = pluginv1.RebootNone.String()
	}
	switch {
	case c.expect.Changes != nil && !slices.Equal(ids, *c.expect.Changes):
		return fmt.Sprintf("the plan has the changes %q, expected are %q", ids, *c.expect.Changes)
	case len(slices.Compact(slices.Sorted(slices.Values(ids)))) != len(ids):
		return fmt.Sprintf("two planned changes have one ID: %q", ids)
	case reboot.String() != want:
		return fmt.Sprintf("the plan asks for the reboot %s, expected is %s", reboot, want)
	}
	return ""
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
		return "after Apply, the tree is not that of expect/:" + list(d) + b.firstLine(want, got), nil
	}
	return "", nil
}

// firstLine shows where the first file begins to differ.
func (b *bench) firstLine(want, got tree) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if w, g := want[name], got[name]; !w.mode.IsRegular() || !g.mode.IsRegular() || w.content == g.content {
			continue
		}
		is, err := os.ReadFile(filepath.Join(b.root, filepath.FromSlash(name)))
		shall, shallErr := os.ReadFile(filepath.Join(b.dir, "expect", filepath.FromSlash(name)))
		if err != nil || shallErr != nil {
			return "" // it only adds to what is said already
		}
		isLines, shallLines := strings.SplitAfter(string(is), "\n"), strings.SplitAfter(string(shall), "\n")
		for i := range max(len(isLines), len(shallLines)) {
			if a, z := lineOf(isLines, i), lineOf(shallLines, i); a != z {
				return fmt.Sprintf("\n  %s line %d is %q instead of %q", name, i+1, a, z)
			}
		}
	}
	return ""
}

func lineOf(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// converged judges what comes after an Apply: an empty plan, but for what an image cannot do, and an Apply that does nothing.
func (b *bench) converged(ctx context.Context, p *plugin, run applied) (finding, error) {
	plan, err := p.plan(ctx, b.planning())
	if err != nil {
		return failed("after Apply, Plan fails: %v", err), nil
	}
	var left, deferred []string
	for _, change := range plan.Changes {
		if !change.NeedsLive {
			return failed("after Apply, Plan still wants %q: %s", change.ID, change.Summary), nil
		}
		left = append(left, change.ID)
	}
	for _, change := range run.finished.Deferred {
		deferred = append(deferred, change.ID)
	}
	if !slices.Equal(left, deferred) {
		return failed("Apply deferred %q, and Plan then wants %q", deferred, left), nil
	}
	before, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	second := p.apply(ctx, b.applying(), 0, nil)
	if err := second.failure(); err != nil {
		return failed("a second Apply fails: %v", err), nil
	}
	if again := second.started(); len(again) > 0 {
		return failed("a second Apply starts %q once more", again), nil
	}
	after, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	if d := differences(before, after, aspects{modes: true, owners: true, times: true}); len(d) > 0 {
		return failed("a second Apply, which starts no change, writes:%s", list(d)), nil
	}
	return passed(), nil
}
