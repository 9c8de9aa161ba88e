package answers

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/machineadm/machineadm/contract/conformance/internal/rig"
	"github.com/machineadm/machineadm/contract/pluginv1"
)

// states matches the ids of claims whose value is true or false. Other ids of a unit are of a plugin's own fields.
var states = regexp.MustCompile(`^((unit|openrc|runit|s6):.*#(enabled|running)|module:.*)$`)

// checkStates holds the values of these claims to the table of P-32: another spelling contradicts every other provider's.
func checkStates(plan pluginv1.Plan, key []byte) rig.Result {
	for _, c := range plan.Claims {
		if states.MatchString(c.ID) && !slices.ContainsFunc([][][]byte{{[]byte("true")}, {[]byte("false")}, nil}, func(value [][]byte) bool {
			return bytes.Equal(pluginv1.NewClaim(key, c.ID, c.Field, value...).Digest, c.Digest)
		}) {
			return rig.Failed(rig.Finding{
				Clause: "P-32", Expected: "the digest of true or false, or of no part, as the table of claims in SPEC.md has it",
				Got:   fmt.Sprintf("the digest of the claim %q is of another value", c.ID),
				Cause: "a value in another form, such as True, yes or 1",
			})
		}
	}
	return rig.Passed()
}
