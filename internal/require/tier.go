package require

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// TierName names a set of tests by what they need. A test that needs nothing but Go, git and make is of no tier and always runs.
type TierName string

// The tiers. `make test-NAME` runs the tests of one; `make campaign` runs all.
const (
	// Controller compiles the libraries of Kubernetes.
	Controller TierName = "controller"
	// System boots nodes, runs daemons and tools that are built or installed for it, or builds for minutes: root on Debian.
	System TierName = "system"
	// Cluster runs Kubernetes and Cluster API, on nodes or on this machine.
	Cluster TierName = "cluster"
	// VM emulates machines.
	VM TierName = "vm"

	campaign TierName = "campaign"
)

// tiersVariable has the tiers that run, separated by commas.
const tiersVariable = "MACHINEADM_TIERS"

// Tier skips the test unless its tier runs. What hands out nodes, tools and clusters calls it, so that a test belongs to
// the tier of what it uses.
func Tier(t testing.TB, tier TierName) {
	t.Helper()
	switch {
	case Runs(tier):
	case tier == campaign:
		t.Skip("make campaign runs it")
	default:
		t.Skipf("make test-%s runs it", tier)
	}
}

// Runs reports whether the tests of a tier run.
func Runs(tier TierName) bool {
	return slices.Contains(strings.Split(os.Getenv(tiersVariable), ","), string(tier))
}

// Everything reports whether a test tries every combination, as in `make campaign`, or only those that find most.
func Everything() bool { return Runs(campaign) }

// Campaign skips a test unless `make campaign` runs it, because others find what it finds.
func Campaign(t testing.TB) {
	t.Helper()
	Tier(t, campaign)
}
