// Package guard is the process that stands between a host and the programs that it starts: see internal/proctree, whose
// other half it is.
//
// A guard is the host's own executable, started once more. Nearly all of what such a start costs is the initialisation of
// the packages of the host, none of which a guard needs. So this package runs the guard while it is being initialised
// itself, which is early: packages are initialised in the order of their import paths, each as soon as those that it
// imports are (Go specification, "Program initialization"), and this one imports next to nothing. A guard that comes
// later for some reason is slower and nothing else, but for one limit: package os raises that of open files, for every
// program that does not come from os/exec. TestGuardComesEarly watches over it.
//
// It is the one place in this repository that does something by being imported; the decision is record 10.
package guard

import "syscall"

// Name is argv[0] of a guard, which people see in ps.
const Name = "proctree-guard"

// Variable is set in the environment of a guard, and of no program that it starts.
const Variable = "PROCTREE_GUARD"

// Socket is the descriptor on which a guard takes orders.
const Socket = 3

// The guard does not return from here.
var _ = runIfGuard()

func runIfGuard() bool {
	if _, asked := syscall.Getenv(Variable); !asked {
		return false
	}
	syscall.Exit(run(Socket))
	return true
}
