package sdk

import (
	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Machine is the machine, or the image root, that a plan function reads and a change modifies.
type Machine = machine.Machine

// Target identifies a machine.
type Target = target.Target
