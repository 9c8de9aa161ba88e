// Package units has what the ready-made changes of services share: which unit can be started, what a document owns of it, and where its
// drop-ins and records are.
package units

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/target"
	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Claim claims an attribute of a unit under the unit's own name, so that an alias is the same unit. Of a service of OpenRC,
// runit or s6, the id has the name of the manager.
func Claim(m machine.Machine, unit string, state machine.ServiceState, attribute string, value ...string) {
	manager := "unit"
	if slices.Contains([]string{target.InitOpenRC, target.InitRunit, target.InitS6}, m.Target.Init) {
		manager = m.Target.Init
	}
	m.Claim(manager+":"+cmp.Or(state.ID, unit)+"#"+attribute, "", value...)
}

// Start starts a unit and checks that it runs: a simple service counts as started before it has done anything.
func Start(ctx context.Context, m machine.Machine, services machine.Services, unit string) error {
	if err := Explained(ctx, m, services, unit, services.Do(ctx, unit, machine.Start)); err != nil {
		return err
	}
	state, err := services.State(ctx, unit)
	if err != nil {
		return err
	}
	if Down(state) {
		return fault.Precondition(unit+" ended right after its start", LogHint(m, unit))
	}
	return nil
}

// Usable refuses a unit that cannot be started.
func Usable(m machine.Machine, unit string, state machine.ServiceState) error {
	switch {
	case !state.Exists:
		return fault.Precondition(unit+" is not installed", "install the package that it comes with, then run again")
	case state.Masked && m.Target.OS == "windows":
		return fault.Precondition("the service "+unit+" is disabled: it cannot be started",
			"find out why, then: Set-Service -StartupType Automatic "+unit)
	case state.Masked:
		return fault.Precondition(unit+" is masked: it cannot be started", "find out why, then: systemctl unmask "+unit)
	case state.Unmet != "":
		return fault.Precondition("systemd does not start "+unit+" on this machine: "+state.Unmet+" is not met",
			"use another service here, or reset the condition in a drop-in: systemctl edit "+unit)
	}
	return nil
}

// Enablable refuses a unit that nothing can enable. An image refuses more when the plan rehearses the links.
func Enablable(unit string, state machine.ServiceState) error {
	if state.Enabled || !slices.Contains([]string{"static", "generated", "transient"}, state.FileState) {
		return nil
	}
	return fault.Precondition(unit+" cannot be enabled ("+state.FileState+"): its [Install] section does not say when to start it",
		"add the section in a unit of the same name in /etc/systemd/system, see systemctl cat "+unit+", then run again")
}

// Explained returns the failure of a start, or that the unit was masked or removed meanwhile, if that is the cause.
func Explained(ctx context.Context, m machine.Machine, services machine.Services, unit string, failure error) error {
	if failure == nil || ctx.Err() != nil {
		return failure
	}
	state, err := services.State(ctx, unit)
	if err != nil {
		return failure // more specific than err
	}
	if refused := Usable(m, unit, state); refused != nil {
		return fault.WithDetail(refused, fault.Output(failure))
	}
	return failure
}

// LogHint says where the log of a unit is.
func LogHint(m machine.Machine, unit string) string {
	if m.Target.OS == "windows" {
		return "see the event logs System and Application"
	}
	return "see journalctl -u " + unit
}

// Ended reports that the unit does not run and that nothing will start it.
func Ended(s machine.ServiceState) bool { return s.Active == "inactive" || s.Active == "failed" }

// Down reports that the unit does not run. One that is restarted repeatedly does not.
func Down(s machine.ServiceState) bool { return Ended(s) || strings.HasPrefix(s.Sub, "auto-restart") }

// Up reports that the unit runs.
func Up(s machine.ServiceState) bool {
	return slices.Contains([]string{"active", "reloading", "refreshing"}, s.Active)
}

// DropInPath is the path of a drop-in of a unit.
func DropInPath(unit, name string) string {
	return "/etc/systemd/system/" + unit + ".d/" + name + ".conf"
}

// Records is the part of machine.State that the ready-made changes use.
type Records interface {
	Load(name string) ([]byte, error)
	Save(name string, data []byte) error
	Delete(name string) error
}

// RecordName returns the state name of a record about a unit. It has a hash, because unit names can have characters that
// state names cannot.
func RecordName(purpose, unit string) string {
	sum := sha256.Sum256([]byte(unit))
	return purpose + "-" + hex.EncodeToString(sum[:12])
}
