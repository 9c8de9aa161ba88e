package activate

import (
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/internal/units"
	"github.com/machineadm/machineadm/sdk/machine"
)

// observation is the current and the desired state.
type observation struct {
	record *record // nil when no activation was interrupted
	unit   machine.ServiceState
	others []other // of Conflicts
	off    []files.Spec
	items  []item
	have   []files.State // of the items, in their order
	want   []files.State
	steps  []string // of the items that differ and are switches
	differ int      // the number of other items that differ and require a restart
	loose  int      // the number of other items that differ and require none
}

// other is a unit of Conflicts.
type other struct {
	name  string // its own, also where Conflicts has an alias
	state machine.ServiceState
}

// runs is also true for a unit that is masked, or whose package was removed, while it runs.
func (o other) runs() bool { return o.state.Active != "" && !units.Ended(o.state) }
