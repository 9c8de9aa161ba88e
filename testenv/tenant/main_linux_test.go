// Package tenant shows what a tenant of a management cluster can do, and what the account of the manager can, in a real API server with
// our admission policies.
package tenant

import (
	"testing"

	"github.com/machineadm/machineadm/testenv/management"
)

func TestMain(m *testing.M) { management.Main(m) }
