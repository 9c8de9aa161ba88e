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
	claimsName  = "claims"
)

// Checks lists every check, in the order in which they are judged. nothing-outside is the first that starts the plugin:
// what a plugin makes outside once and then finds there is only new to the first. outcome goes before those that
// measure by the tree of an undisturbed run, which is no measure where outcome fails.
func Checks() []Check {
	return slices.Concat(checksOfAnswers(), checksOfDisturbance(), checksOfTheRoot())
}

func checksOfAnswers() []Check {
	return []Check{
		{
			Name: "nothing-outside", Clause: "P-16, C-5", run: nothingOutside,
			Says: "nothing is written beside the root, and on this machine nothing at the absolute path of what the case has " +
				"in root/ and expect/, and no name in a directory of these; other paths are not watched",
		},
		{
			Name: "describe", Clause: "N-1, P-10, P-11, P-12, P-13, P-36, P-37, P-38", run: describes,
			Says: "Describe names the provider and the kind as the binary's file does, a version, the phase and the secret fields of " +
				"the case's kind, and sends a JSON schema only when it is asked to",
		},
		{
			Name: outcomeName, Clause: "P-19, P-20, P-21, P-25, P-26, P-31, G-9, E-1, E-2, E-7, E-10, E-11", run: outcome,
			Says: "Plan, Apply and Plan again end as the case expects, and a second Apply does nothing",
		},
		{
			Name: claimsName, Clause: "P-32, P-33, P-34", run: claims,
			Says: "Plan claims what the document owns, the same before and after Apply, with digests under the key of the request",
		},
		{
			Name: eventsName, Clause: "P-20, P-22, P-23, P-24, P-31", run: events,
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
	}
}

func checksOfDisturbance() []Check {
	return []Check{
		{
			Name: "limit", Clause: "P-24, P-25, G-10", run: limits,
			Says: "Apply stops after as many changes as the limit, defers what it defers without one, and a rerun completes them",
		},
		{
			Name: "stop", Clause: "P-27, P-28, G-10", run: stops,
			Says: "Stop lets the change in hand be finished, and no other started",
		},
		{
			Name: "kill", Clause: "G-10, G-11, G-21", run: kills,
			Says: "after SIGKILL when the started or the changed of a change arrives, and at no other moment, no file is half " +
				"written, and a rerun makes the tree of an undisturbed run",
		},
		{
			Name: "in-one-step", Clause: "G-11", run: inOneStep,
			Says: "Apply writes no file under its own name: it writes another one and renames it (seen by inotify; a write " +
				"through mmap is not)",
		},
		{
			Name: "two-at-once", Clause: "G-17", run: twoAtOnce,
			Says: "two Applies at once end in one good state, or in a clear refusal",
		},
		{
			Name: "umask", Clause: "G-11", run: umasks,
			Says: "modes do not depend on the umask",
		},
	}
}

func checksOfTheRoot() []Check {
	return []Check{
		{
			Name: "links-out", Clause: "G-15, P-16", run: linksOut,
			Says: "links that point out of the root are followed inside it, or refused",
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

// clauseOf is the clause that an error says the plugin breaks, else the other one.
func clauseOf(err error, other string) string {
	if e := contractError(err); e != nil && e.Clause != "" {
		return e.Clause
	}
	return other
}

// aboutClaims says whether an error says that the claims of an answer break the contract.
func aboutClaims(err error) bool {
	return slices.Contains([]string{"P-32", "P-33", "P-34"}, clauseOf(err, ""))
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
func (b *bench) compare(want reference, after string) (finding, error) {
	got, err := readTree(b.root)
	if err != nil {
		return finding{}, err
	}
	d := differences(want.after, got, aspects{modes: true, owners: true})
	if len(d) == 0 {
		return passed(), nil
	}
	lines := b.firstDifference(want.after, got, func(name string) ([]byte, error) { return b.trial.content(want, name) })
	return failed("%s, the tree is not that of an undisturbed run:%s%s", after, list(d), lines), nil
}

// again applies once more, with a new process, and judges the tree by that of the undisturbed run.
func (b *bench) again(ctx context.Context, want reference, after string) (finding, error) {
	p, err := b.start(ctx)
	if err != nil {
		return finding{}, err
	}
	if err := p.apply(ctx, b.applying(), 0, nil).failure(); err != nil {
		return failed("%s, the next Apply fails: %v", after, err).of("G-10"), nil
	}
	f, err := b.compare(want, after+" and another Apply")
	return f.of("G-10"), err
}
