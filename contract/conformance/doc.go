// Package conformance judges a plugin binary by the contract, over the wire, without knowing what language it is
// written in. A vendor's test is one line:
//
//	conformance.Run(t, binary, "testdata/conformance")
//
// # Cases
//
// A folder of cases holds one directory for each. In it:
//
//	config.yaml  the document, exactly one; ${canary} stands for a random word
//	root/        the tree before; none is an empty tree
//	expect/      the tree afterwards, whole; none is the tree of before. ${canary} is filled in here too
//	expect.yaml  what is said about it; none is a document that is applied without an error
//	README.md    for people
//
// expect.yaml may hold:
//
//	errors:                       # Plan and Apply refuse the document, and with nothing but this
//	  - {code: InvalidConfig, field: "spec.servers[0].address"}
//	changes: [a, b]               # the IDs of the first plan, in order; left out: not compared
//	reboot: AfterRun              # the most that a change of the first plan asks for; left out: None
//	secrets: [spec.password]      # the fields that are secret: exactly where ${canary} stands
//	modes: {etc/secret: "0600"}   # permissions in expect/ other than 0755 for directories and programs, else 0644
//
// Version control keeps neither modes nor empty directories. So root/ and expect/ are read as if their directories and
// programs had the mode 0755 and everything else 0644, and directories without a file are not compared with expect/.
//
// # What is judged
//
// Checks lists the checks. Each starts the plugin anew with a copy of the tree as an image root; the live machine is
// never touched. A check that can say nothing about a case answers NotApplicable with the reason, which is not a pass.
//
// # Processes
//
// A plugin gets a process group of its own and dies with the process that judges it. That leaves
// the children of the vendor's other tests alone, unlike proctree.Contain. What the plugin has started is looked up in
// /proc and ended with it.
//
// Many checks observe through Linux; elsewhere they are not applicable.
package conformance
