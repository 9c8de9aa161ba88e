// Package suite runs the tests of the checkout tier by tier, and says what it proved and what it did not run.
//
// A test belongs to the tier of what it takes: internal/require, Tier. Which packages a target compiles follows from their
// source: what they import, and which tiers their files name. No list is kept.
//
// Packages of the tiers system, cluster and vm are run one process each, within a budget of time. After a whole green run their
// content key is kept in the cache, and a run under CI=true passes over a package whose key has not changed. Four comments in
// a package's tests say more:
//
//	//machineadm:core [SUBTEST]  above a test function: it, or its subtest, comes before the whole of any package
//	//machineadm:alone           the package runs beside no other
//	//machineadm:first           it takes longest: the targets without a budget begin it before the others
//	//machineadm:tier NAME       all of the package is of this tier, and no other compiles it: of a nested module, say, which cannot
//	                             import internal/require
package suite
