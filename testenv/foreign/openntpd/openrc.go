package main

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// openrc is the service manager of a machine or, offline, of an image.
type openrc struct {
	files    *machine.FS
	commands machine.Runner
	offline  bool
}

const (
	script  = "/etc/init.d/"
	atBoot  = "/etc/runlevels/default/"
	started = "/run/openrc/started/"
	// groups is where the control groups of services are, in version 2 of the kernel's interface.
	groups = "/sys/fs/cgroup"
	// inOwnGroup runs rc-service in a control group of its own, because the daemon stays below it and would end with the
	// Apply (SPEC G-20), and without the lock of the host.
	inOwnGroup = `mkdir -p "$1" && echo $$ >"$1/cgroup.procs" && exec rc-service "$2" "$3" 3>&-`
)

func (o openrc) has(name string) (bool, error) {
	_, err := o.files.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// State implements machine.Services. OpenRC makes a new link for each start of a service.
func (o openrc) State(ctx context.Context, unit string) (machine.ServiceState, error) {
	out := machine.ServiceState{ID: unit, Names: []string{unit}, Active: "inactive", Sub: "dead", FileState: "disabled"}
	var err error
	if out.Exists, err = o.has(script + unit); err != nil || !out.Exists {
		return out, err
	}
	if out.Enabled, err = o.has(atBoot + unit); err != nil || o.offline {
		return out, err
	}
	if out.Enabled {
		out.FileState = "enabled"
	}
	status, err := o.commands.Run(ctx, machine.Command{Name: "rc-service", Args: []string{unit, "status"}, OK: []int{1, 3, 4, 8, 16, 32}})
	if err != nil || status.ExitCode != 0 {
		return out, err
	}
	id, err := o.commands.Run(ctx, machine.Command{Name: "stat", Args: []string{"-c", "%i:%Y", started + unit}, OK: []int{1}})
	out.Active, out.Sub, out.InvocationID = "active", "running", strings.TrimSpace(string(id.Stdout))
	return out, err
}

// States implements machine.Services.
func (o openrc) States(ctx context.Context, units ...string) ([]machine.ServiceState, error) {
	var out []machine.ServiceState
	for _, unit := range units {
		state, err := o.State(ctx, unit)
		if err != nil {
			return nil, err
		}
		out = append(out, state)
	}
	return out, nil
}

// SetEnabled implements machine.Services by the link that rc-update(8) makes.
func (o openrc) SetEnabled(_ context.Context, unit string, enabled bool) error {
	if enabled {
		return o.files.Symlink(script+unit, atBoot+unit)
	}
	if there, err := o.has(atBoot + unit); err != nil || !there {
		return err
	}
	return o.files.Remove(atBoot + unit)
}

// startable refuses a machine on which a service would end with the command that starts it.
func (o openrc) startable() error {
	there, err := o.has(groups + "/cgroup.procs")
	if err != nil || there || o.offline {
		return err
	}
	return sdk.Precondition("there are no control groups, in which a service outlives the command that starts it",
		"mount them: mount -t cgroup2 none "+groups)
}

// Do implements machine.Services.
func (o openrc) Do(ctx context.Context, unit string, a machine.Action) error {
	if o.offline {
		return machine.ErrOffline
	}
	_, err := o.commands.Run(ctx, machine.Command{
		Name: "sh", Args: []string{"-c", inOwnGroup, "sh", groups + "/openrc." + unit, unit, a.String()}, Starts: true,
	})
	if err != nil {
		return &machine.ServiceError{Unit: unit, Action: a.String(), Hint: "rc-service " + unit + " " + a.String(), Err: err}
	}
	return nil
}

// DaemonReload implements machine.Services: OpenRC reads a script when it runs it.
func (o openrc) DaemonReload(context.Context) error { return nil }
