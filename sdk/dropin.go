package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/sdk/internal/units"
)

// DropIn returns the change that writes /etc/systemd/system/UNIT.d/NAME.conf and makes systemd read it; nil when both is
// done. The unit is not restarted: where that is needed, use an Activation with this file. Unit is a whole name, such as
// chronyd.service. Source: systemd.unit(5).
func DropIn(ctx context.Context, m Machine, unit, name, content string) (*Change, error) {
	if m.Target.OS != "linux" {
		return nil, Unsupported("", "only systemd has drop-ins of units", "")
	}
	for _, part := range []string{unit, name} {
		if part == "" || part[0] == '.' || strings.ContainsAny(part, "/\x00") {
			return nil, fmt.Errorf("drop-in %q of the unit %q: not a name", name, unit)
		}
	}
	if !strings.Contains(unit, ".") {
		return nil, fmt.Errorf("drop-in %q of the unit %q: the unit has no type", name, unit)
	}
	path := units.DropInPath(unit, name)
	change, err := File(m, FileSpec{Path: path, Content: []byte(content), Mode: 0o644})
	if err != nil || m.Offline() { // in an image systemd reads it at boot
		return change, err
	}
	r := reload{machine: m, store: m.State, unit: unit}
	due, err := r.due(ctx)
	switch {
	case err != nil:
		return nil, err
	case change == nil && !due:
		return nil, nil
	case change == nil:
		nothing := func(context.Context, Progress) error { return nil }
		change = &Change{ID: "file:" + path, Summary: "make systemd read " + path, Do: nothing}
	}
	write := change.Do
	change.Do = func(ctx context.Context, p Progress) error {
		return r.after(ctx, func() error { return write(ctx, p) })
	}
	return change, nil
}

// reload makes systemd read the files of a unit again, also after a crash between the change of a file and the reload.
//
// systemd reports when that is due (NeedDaemonReload), but by modification times, which are wrong after the clock was set
// back. So an intent is stored as well, from before the change until the reload.
type reload struct {
	machine Machine
	store   units.Records
	unit    string
}

func (r reload) due(ctx context.Context) (bool, error) {
	switch _, err := r.store.Load(units.RecordName("reload", r.unit)); {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("load the record of an unfinished reload: %w", err)
	}
	state, err := r.machine.Services.State(ctx, r.unit) // an error where there is no systemd
	return state.NeedReload, err
}

// after changes files of the unit, then makes systemd read them.
func (r reload) after(ctx context.Context, change func() error) error {
	name := units.RecordName("reload", r.unit)
	if err := r.store.Save(name, []byte(r.unit+"\n")); err != nil {
		return fmt.Errorf("record that systemd must read the files of %s: %w", r.unit, err)
	}
	if err := change(); err != nil {
		return err
	}
	if err := r.machine.Services.DaemonReload(ctx); err != nil {
		return err
	}
	return r.store.Delete(name)
}
