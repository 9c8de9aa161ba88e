package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"
)

// DropIn returns the change that makes /etc/systemd/system/UNIT.d/NAME.conf so and has systemd read it; nil when both
// are so already. The unit is not restarted: where it must be, make the file one of an Activation. Unit is a whole
// name, as in chronyd.service. Source: systemd.unit(5).
func DropIn(ctx context.Context, m Machine, unit, name, content string) (*Change, error) {
	if m.Target.OS != "linux" {
		return nil, Unsupported("", "drop-ins of units are systemd's", "")
	}
	for _, part := range []string{unit, name} {
		if part == "" || part[0] == '.' || strings.ContainsAny(part, "/\x00") {
			return nil, fmt.Errorf("drop-in %q of the unit %q: not a name", name, unit)
		}
	}
	if !strings.Contains(unit, ".") {
		return nil, fmt.Errorf("drop-in %q of the unit %q: name the unit with its type", name, unit)
	}
	path := "/etc/systemd/system/" + unit + ".d/" + name + ".conf"
	change, err := File(m, FileSpec{Path: path, Content: []byte(content), Mode: 0o644})
	if err != nil || m.Offline() { // an image is read as a whole when it boots
		return change, err
	}
	r := reload{machine: m, memory: m.State, unit: unit}
	due, err := r.due(ctx)
	switch {
	case err != nil:
		return nil, err
	case change == nil && !due:
		return nil, nil
	case change == nil:
		change = &Change{ID: "file:" + path, Summary: "have systemd read " + path}
	}
	write := change.Do
	change.Do = func(ctx context.Context, p Progress) error {
		return r.around(ctx, func() error {
			if write == nil {
				return nil
			}
			return write(ctx, p)
		})
	}
	return change, nil
}

// memory is what the ready-made changes need of machine.State.
type memory interface {
	Load(name string) ([]byte, error)
	Save(name string, data []byte) error
	Delete(name string) error
}

// memoryName names what is remembered about a unit: names of units have characters that names of states lack.
func memoryName(purpose, unit string) string {
	sum := sha256.Sum256([]byte(unit))
	return purpose + "-" + hex.EncodeToString(sum[:12])
}

// reload has systemd read the files of a unit again, also when the process that changed them died before it could.
//
// systemd itself says when that is due (NeedDaemonReload), but it goes by modification times, and those lie when the
// clock was set back in between. So an intent is kept as well, from before the file is changed until it was read.
type reload struct {
	machine Machine
	memory  memory
	unit    string
}

func (r reload) due(ctx context.Context) (bool, error) {
	switch _, err := r.memory.Load(memoryName("reload", r.unit)); {
	case err == nil:
		return true, nil
	case !errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("remember an unfinished reload: %w", err)
	}
	state, err := r.machine.Services.State(ctx, r.unit) // says so where there is no systemd
	return state.NeedReload, err
}

// around changes files of the unit and has systemd read them.
func (r reload) around(ctx context.Context, change func() error) error {
	name := memoryName("reload", r.unit)
	if err := r.memory.Save(name, []byte(r.unit+"\n")); err != nil {
		return fmt.Errorf("remember that systemd must read the files of %s: %w", r.unit, err)
	}
	if err := change(); err != nil {
		return err
	}
	if err := r.machine.Services.DaemonReload(ctx); err != nil {
		return err
	}
	return r.memory.Delete(name)
}
