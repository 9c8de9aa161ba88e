package conformance

import (
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/answers"
	"github.com/machineadm/machineadm/contract/conformance/internal/changes"
	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

// Checks lists every check, in the order in which they run. nothing-outside is the first, because a plugin may write
// outside only if it finds nothing there. outcome precedes the checks that compare with the tree of an undisturbed run,
// which says nothing where outcome fails. kill is the last: it takes the running processes of the case.
func Checks() []Check {
	return slices.Concat(checksOfAnswers(), checksOfObjects(), checksOfDisturbance(), checksOfTheRoot(), []Check{{
		Name: "live", Clause: "E-1, G-5, G-20, G-22", run: changes.Live,
		Fresh: "the plugin runs in namespaces of its own, on another machine",
		Says: "on a machine of root/ and commands/, Apply leaves no process; it reports a command that fails, or does without it; and after a " +
			"SIGKILL before or after each command, or its failure, another Apply makes the same machine",
	}, {
		Name: "shutdown", Clause: "P-3", once: true, of: testcase.Everyone, run: changes.Shutdown,
		Fresh: "Shutdown ends a process",
		Says:  "after Shutdown the process ends, which the kit waits for longer than P-3 permits",
	}, {
		Name: "kill", Clause: "G-10, G-11, G-21", run: changes.Kills,
		Fresh: "each SIGKILL ends a process",
		Says: "after SIGKILL when the started or the changed of a change arrives, and at no other moment, no file is half " +
			"written, and a rerun makes the tree of an undisturbed run",
	}})
}

func checksOfAnswers() []Check {
	return []Check{
		{
			Name: "nothing-outside", Clause: "P-16, C-5", alone: true, run: changes.NothingOutside,
			Fresh: "what a process writes when it starts counts; the checks that follow share the process",
			Says: "nothing is written beside the root and, where the kit is root, in /var/tmp; and on this machine nothing at the absolute " +
				"path of what the case has in root/ and expect/, and no name in a directory of these; other paths are not watched",
		},
		{
			Name: "describe", Clause: "N-1, N-2, N-3, N-4, P-2, P-10, P-11, P-12, P-13, P-36, P-37, P-38, P-40, P-53", of: testcase.Everyone, run: answers.Describes,
			Says: "Describe names the provider and the kind as the binary's file does, a version, the phase and the secret fields of " +
				"the case's kind, its capabilities, and sends a JSON schema only when it is asked to; the health service answers",
		},
		{
			Name: "cookie", Clause: "H-4", once: true, of: testcase.Everyone, run: changes.Cookie,
			Says: "without the cookie, and with another one, the plugin ends with exit code 1 and says on standard error why",
		},
		{
			Name: rig.OutcomeName, Clause: "P-19, P-20, P-21, P-25, P-26, P-31, P-53, G-9, G-14, E-1, E-2, E-7, E-10, E-11", run: answers.Outcome,
			Says: "Plan, Apply and Plan again end as the case expects, and a second Apply does nothing",
		},
		{
			Name: rig.ClaimsName, Clause: "P-32, P-33, P-34", run: answers.Claims,
			Says: "Plan claims what the document owns and the case expects, the same before and after Apply, with digests under the key of the request",
		},
		{
			Name: rig.EventsName, Clause: "P-20, P-22, P-23, P-24, P-31", run: answers.Events,
			Says: "Apply ends with exactly one finished, and each change is started, then changed",
		},
		{
			Name: "unknown-field", Clause: "F-6, F-11, G-2", of: testcase.Everyone, run: answers.UnknownField,
			Says: "an unknown field is refused with its path; below the spec and providerConfig, it is refused or changes the claims; a provider that is null counts as absent",
		},
		{
			Name: "kind", Clause: "F-20, G-23", eachKind: true, run: answers.KindMeans,
			Says: "of a kind of machineadm, Plan refuses what contract/v1alpha1/cases says, at these fields, and claims what it says, or answers " +
				"Unsupported or Precondition to a valid document",
		},
		{
			Name: "fields", Clause: "G-4", eachKind: true, run: answers.Fields,
			Says: "each field of a kind of machineadm that images can hold changes what Plan answers, or is refused; a field is tried with " +
				"the values that its schema suggests",
		},
		{
			Name: "quotes", Clause: "G-3", run: answers.Quotes,
			Says: "of a kind with secret fields, no InvalidConfig and no Unsupported quotes a value that it refuses",
		},
		{
			Name: "plan-writes-nothing", Clause: "G-6, P-41", of: testcase.Everyone, run: changes.PlanWritesNothing,
			Says: "Plan touches nothing, in the root or beside it; nor do Fetch and Passphrase, in served/ and in the home directory",
		},
		{
			Name: "empty-root", Clause: "G-8, P-12", run: changes.EmptyRoot,
			Says: "Plan on an empty root answers with what is missing or Precondition, unless the document itself is refused, and the plugin is not active there",
		},
		{
			Name: "other-target", Clause: "G-1, P-12", of: testcase.Everyone, run: changes.OtherTarget,
			Says: "a target of another operating system is Unsupported, never a success",
		},
		{
			Name: "large-document", Clause: "P-6", once: true, of: testcase.Everyone, run: changes.LargeDocument,
			Says: "a document of 10 MiB is answered, not dropped",
		},
		{
			Name: "secrets", Clause: "G-23", of: testcase.Everyone, run: answers.Secrets,
			Fresh: "its stderr is complete only when it has ended, and only a start shows its arguments and environment",
			Says:  "no secret of the document or of an object shows in plans, events, errors, logs, arguments or environments",
		},
	}
}

func checksOfObjects() []Check {
	return []Check{
		{
			Name: rig.ObjectName, Clause: "P-1, P-30, P-42, P-45, P-48, E-1, E-2, E-7, E-10, E-11", of: testcase.Remote, run: answers.Object,
			Says: "Fetch or Passphrase answers the bytes or the errors that the case expects, the same twice",
		},
		{
			Name: "max-bytes", Clause: "P-42", of: testcase.Source, run: answers.MaxBytes,
			Says: "Fetch sends an object of max_bytes, and refuses one that is a byte larger",
		},
		{
			Name: "validate-only", Clause: "P-43", of: testcase.Remote, run: answers.ValidateOnly,
			Says: "validate_only answers the errors of the document without a part, a passphrase or a connection to ${server}; other " +
				"connections are not seen",
		},
		{
			Name: "store", Clause: "P-1, E-1, P-40, P-43, P-56, P-59", of: testcase.Source, run: answers.Stores,
			Says: "with the capability store, an object beside the object of the document is stored, replaced, fetched and removed, each call " +
				"repeatable, without a connection to ${server} for validate_only, and without a secret of the document in the answer",
		},
		{
			Name: "cancel", Clause: "P-29", of: testcase.Remote, run: answers.Cancels,
			Says: "a call that is cancelled ends, its request to ${server} too, and the next one is answered",
		},
	}
}

func checksOfDisturbance() []Check {
	return []Check{
		{
			Name: "limit", Clause: "P-24, P-25, G-10", run: answers.Limits,
			Says: "Apply stops after as many changes as the limit, defers what it defers without one, and a rerun completes them",
		},
		{
			Name: "files", Clause: "P-50", run: changes.PlansFiles,
			Says: "the files that Plan lists are those that Apply leaves, and on top of them Plan lists none",
		},
		{
			Name: "stop", Clause: "P-27, P-28, G-10", run: changes.Stops,
			Fresh: "a Stop that has an effect on a later Apply would disturb other checks",
			Says: "Stop lets the change in hand be finished, and no other started; it stops an Apply whose headers have arrived, before " +
				"its request has",
		},
		{
			Name: "drift", Clause: "G-7", run: changes.Drift,
			Says: "when the old files are restored after Apply, Plan answers with the changes again, with the same state directory",
		},
		{
			Name: "in-one-step", Clause: "G-11", run: changes.InOneStep,
			Says: "Apply writes no file under its own name: it writes another one and renames it (seen by inotify; a write " +
				"through mmap is not)",
		},
		{
			Name: "two-at-once", Clause: "G-17", run: changes.TwoAtOnce,
			Says: "two Applies at once end in one good state, or in a clear refusal",
		},
		{
			Name: "locks", Clause: "G-12", run: changes.WaitsForLocks,
			Says: "while another process has a temporary file locked, Apply neither writes, replaces nor removes it",
		},
		{
			Name: "umask", Clause: "G-11", run: changes.Umasks,
			Fresh: "a process inherits its umask when it starts",
			Says:  "modes do not depend on the umask",
		},
	}
}

func checksOfTheRoot() []Check {
	return []Check{
		{
			Name: "links-out", Clause: "G-15, P-16", run: changes.LinksOut,
			Says: "links that point out of the root are followed inside it, or refused",
		},
		{
			Name: "no-command", Clause: "G-15, P-41", of: testcase.Everyone, run: changes.NoCommand,
			Says: "an offline root runs no command, and neither do Fetch and Passphrase",
		},
	}
}
