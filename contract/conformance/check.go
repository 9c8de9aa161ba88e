package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// Check is one property of a plugin.
type Check struct {
	// Name is the name of the sub-test.
	Name string
	// Says is the property, as a sentence.
	Says string
	// Clause names the clauses of SPEC.md that ask for it, parted by commas.
	Clause string

	// once marks a check that depends on no case.
	once bool
	run  func(context.Context, *bench) (finding, error)
}

// Checks that others point at.
const (
	outcomeName = "outcome"
	eventsName  = "events"
)

// Checks lists every check, in the order in which they are judged.
func Checks() []Check {
	return []Check{
		{
			Name: "describe", Clause: "P-10, P-11", run: describes,
			Says: "Describe names the provider, a version, and the kind of the case with its phase",
		},
		{
			Name: outcomeName, Clause: "P-19, G-9, E-7", run: outcome,
			Says: "Plan, Apply and Plan again end as the case expects, and a second Apply does nothing",
		},
		{
			Name: eventsName, Clause: "P-22, P-23", run: events,
			Says: "Apply ends with exactly one finished, and each change is started, then changed",
		},
		{
			Name: "unknown-field", Clause: "G-2, F-11", run: unknownField,
			Says: "an unknown field is refused with its path",
		},
		{
			Name: "plan-writes-nothing", Clause: "G-6", run: planWritesNothing,
			Says: "Plan touches nothing, in the root or beside it",
		},
		{
			Name: "empty-root", Clause: "G-8", run: emptyRoot,
			Says: "Plan on an empty root answers with changes or Precondition",
		},
		{
			Name: "other-target", Clause: "G-1, P-12", run: otherTarget,
			Says: "a target of another operating system is Unsupported, never a success",
		},
		{
			Name: "large-document", Clause: "P-6", once: true, run: largeDocument,
			Says: "a document of 10 MiB is answered, not dropped",
		},
		{
			Name: "secrets", Clause: "G-23", run: secrets,
			Says: "no secret shows in plans, events, errors, logs, arguments or environments",
		},
		{
			Name: "limit", Clause: "P-24", run: limits,
			Says: "Apply stops after as many changes as asked for, and a rerun completes them",
		},
		{
			Name: "stop", Clause: "P-27, P-28", run: stops,
			Says: "Stop lets the change in hand be finished, and no other started",
		},
		{
			Name: "kill", Clause: "G-10, G-11, G-21", run: kills,
			Says: "after SIGKILL at any event no file is half written, and a rerun makes the tree of an undisturbed run",
		},
		{
			Name: "two-at-once", Clause: "G-17", run: twoAtOnce,
			Says: "two Applies at once end in one good state, or in a clear refusal",
		},
		{
			Name: "umask", Clause: "G-11", run: umasks,
			Says: "modes do not depend on the umask",
		},
		{
			Name: "links-out", Clause: "G-15, P-16", run: linksOut,
			Says: "links that point out of the root are followed inside it, or refused",
		},
		{
			Name: "nothing-outside", Clause: "P-16", run: nothingOutside,
			Says: "nothing is written outside the root",
		},
		{
			Name: "no-command", Clause: "G-15", run: noCommand,
			Says: "an offline root runs no command",
		},
	}
}

// contractError returns the error as one of the contract, nil if it is none.
func contractError(err error) *pluginv1.Error {
	var e *pluginv1.Error
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// trouble is an error as a reason gives it, "" for none.
func trouble(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// wrongAnswer says what is wrong with an answer that must be an error with one of these codes; "" when nothing is.
func wrongAnswer(err error, allowed ...pluginv1.Code) string {
	var names []string
	for _, code := range allowed {
		names = append(names, code.String())
	}
	want := strings.Join(names, " or ")
	e := contractError(err)
	switch {
	case err == nil:
		return "succeeded instead of answering " + want
	case e == nil || !slices.Contains(allowed, e.Code):
		return fmt.Sprintf("answered %q instead of %s", err, want)
	}
	return ""
}

// compare judges the tree of the bench by that of the undisturbed run.
func (b *bench) compare(want tree, after string) (finding, error) {
	d, err := b.sameTree(want)
	if err != nil {
		return finding{}, err
	}
	if d != "" {
		return failed("%s, the tree is not that of an undisturbed run:%s", after, d), nil
	}
	return passed(), nil
}

// again applies once more, with a new process, and judges the tree by that of the undisturbed run.
func (b *bench) again(ctx context.Context, want tree, after string) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	if err := p.apply(ctx, b.applying(), 0, nil).failure(); err != nil {
		return failed("%s, the next Apply fails: %v", after, err), nil
	}
	return b.compare(want, after+" and another Apply")
}
