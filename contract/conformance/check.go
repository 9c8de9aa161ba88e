package conformance

import (
	"context"

	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/conformance/internal/testcase"
)

// Check is one property of a plugin.
type Check struct {
	// Name is the name of the sub-test.
	Name string
	// Says is the property, as a sentence.
	Says string
	// Clause names the clauses of SPEC.md that require it, separated by commas.
	Clause string
	// Fresh is the reason why the check starts processes of its own; empty for a check that shares the processes of the case.
	Fresh string

	// of are the types of plugin that the check is for; 0 is a configurator.
	of testcase.Role
	// once marks a check that depends on no case, eachKind one that depends on the kind of the case alone.
	once, eachKind bool
	// alone marks a check that no other case may disturb.
	alone bool
	run   func(context.Context, *rig.Fixture) (rig.Result, error)
}
