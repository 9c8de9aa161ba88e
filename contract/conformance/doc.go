// Package conformance checks a plugin binary in any language against the contract, over the wire. A vendor's test is one
// line:
//
//	conformance.Run(t, binary, "testdata/conformance")
//
// CaseFormat describes a case, case.schema.json is the JSON Schema of its expect.yaml, and NewCase makes one from a document.
//
// # Checks
//
// A check gets a copy of the case's tree as an image root; the kit itself never changes the live machine. A plugin that
// ignores the root does: nothing-outside reports it and undoes nothing. What such a plugin left on this machine in an
// earlier run is not new in the next one.
//
// The kind of a case's document decides what the plugin is checked as: a source (RemoteConfig), a key provider
// (EncryptedConfig), or a configurator. The first two have no tree but a counterpart, the files of served/, which the kit
// serves by HTTP as well; a vendor whose plugin speaks another protocol starts its own with Suite.Setup. A check of another
// type of plugin does not run. What Plan is for a configurator, Fetch and Passphrase are for these.
//
// A check that says nothing about a case is NotApplicable with the reason, which is not a pass. The file must have the name
// by which a host looks for it, also where a test builds it: describe compares the name.
//
// The checks, in their order, with the clauses of SPEC.md that they hold a plugin to:
//
//   - nothing-outside: nothing is written beside the root and, where the kit is root, in /var/tmp; and on this machine
//     nothing at the absolute path of what the case has in root/ and expect/, and no name in a directory of these;
//     other paths are not watched [P-16, C-5]
//   - describe: Describe names the provider and the kind as the binary's file does, a version, the phase and the secret
//     fields of the case's kind, its capabilities, and sends a JSON schema only when it is asked to; the health service
//     answers [N-1, N-2, N-3, N-4, P-2, P-10, P-11, P-12, P-13, P-36, P-37, P-38, P-40, P-53]
//   - cookie: without the cookie, and with another one, the plugin ends with exit code 1 and says on standard error why
//     [H-4]
//   - outcome: Plan, Apply and Plan again end as the case expects, and a second Apply does nothing [P-19, P-20, P-21,
//     P-25, P-26, P-31, P-53, G-9, G-14, E-1, E-2, E-7, E-10, E-11]
//   - claims: Plan claims what the document owns and the case expects, the same before and after Apply, with digests
//     under the key of the request [P-32, P-33, P-34]
//   - events: Apply ends with exactly one finished, and each change is started, then changed [P-20, P-22, P-23, P-24,
//     P-31]
//   - unknown-field: an unknown field is refused with its path; below the spec and providerConfig, it is refused or
//     changes the claims; a provider that is null counts as absent [F-6, F-11, G-2]
//   - kind: of a kind of machineadm, Plan refuses what contract/v1alpha1/cases says, at these fields, and claims what
//     it says, or answers Unsupported or Precondition to a valid document [F-20, G-23]
//   - fields: each field of a kind of machineadm that images can hold changes what Plan answers, or is refused; a field
//     is tried with the values that its schema suggests [G-4]
//   - quotes: of a kind with secret fields, no InvalidConfig and no Unsupported quotes a value that it refuses [G-3]
//   - plan-writes-nothing: Plan touches nothing, in the root or beside it; nor do Fetch and Passphrase, in served/ and
//     in the home directory [G-6, P-41]
//   - empty-root: Plan on an empty root answers with what is missing or Precondition, unless the document itself is
//     refused, and the plugin is not active there [G-8, P-12]
//   - other-target: a target of another operating system is Unsupported, never a success [G-1, P-12]
//   - large-document: a document of 10 MiB is answered, not dropped [P-6]
//   - secrets: no secret of the document or of an object shows in plans, events, errors, logs, arguments or
//     environments [G-23]
//   - object: Fetch or Passphrase answers the bytes or the errors that the case expects, the same twice [P-1, P-30,
//     P-42, P-45, P-48, E-1, E-2, E-7, E-10, E-11]
//   - max-bytes: Fetch sends an object of max_bytes, and refuses one that is a byte larger [P-42]
//   - validate-only: validate_only answers the errors of the document without a part, a passphrase or a connection to
//     ${server}; other connections are not seen [P-43]
//   - store: with the capability store, an object beside the object of the document is stored, replaced, fetched and
//     removed, each call repeatable, without a connection to ${server} for validate_only, and without a secret of the
//     document in the answer [P-1, E-1, P-40, P-43, P-56, P-59]
//   - cancel: a call that is cancelled ends, its request to ${server} too, and the next one is answered [P-29]
//   - limit: Apply stops after as many changes as the limit, defers what it defers without one, and a rerun completes
//     them [P-24, P-25, G-10]
//   - files: the files that Plan lists are those that Apply leaves, and on top of them Plan lists none [P-50]
//   - stop: Stop lets the change in hand be finished, and no other started; it stops an Apply whose headers have
//     arrived, before its request has [P-27, P-28, G-10]
//   - drift: when the old files are restored after Apply, Plan answers with the changes again, with the same state
//     directory [G-7]
//   - in-one-step: Apply writes no file under its own name: it writes another one and renames it (seen by inotify; a
//     write through mmap is not) [G-11]
//   - two-at-once: two Applies at once end in one good state, or in a clear refusal [G-17]
//   - locks: while another process has a temporary file locked, Apply neither writes, replaces nor removes it [G-12]
//   - umask: modes do not depend on the umask [G-11]
//   - links-out: links that point out of the root are followed inside it, or refused [G-15, P-16]
//   - no-command: an offline root runs no command, and neither do Fetch and Passphrase [G-15, P-41]
//   - live: on a machine of root/ and commands/, Apply leaves no process; it reports a command that fails, or does
//     without it; and after a SIGKILL before or after each command, or its failure, another Apply makes the same
//     machine [E-1, G-5, G-20, G-22]
//   - shutdown: after Shutdown the process ends, which the kit waits for longer than P-3 permits [P-3]
//   - kill: after SIGKILL when the started or the changed of a change arrives, and at no other moment, no file is half
//     written, and a rerun makes the tree of an undisturbed run [G-10, G-11, G-21]
//
// # Processes
//
// The checks of a case share its plugin processes, as a host uses one process for all documents of a run, because an
// interpreter can take half a second to start. A check starts a process of its own where its result depends on what the
// process has not done yet; Check.Fresh is the reason. What follows an interruption is always done by another process than
// the one that was interrupted. After a finding, the processes of the case are ended.
//
// A plugin gets a process group of its own and dies with the kit's process. That leaves the children of the vendor's other
// tests alone, unlike proctree.Contain. The plugin's descendants are found in /proc and ended with it.
//
// Many checks use Linux; elsewhere they are not applicable.
package conformance
