package sdk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/machineadm/machineadm/sdk/machine"
)

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
	if _, err := r.machine.Services.State(ctx, r.unit); err != nil { // says so where there is no systemd
		return false, err
	}
	result, err := r.machine.Commands.Run(ctx, machine.Command{
		Name: "systemctl", Args: []string{"show", "--property=NeedDaemonReload", "--", r.unit},
	})
	if err != nil {
		return false, err
	}
	return strings.TrimSpace(string(result.Stdout)) == "NeedDaemonReload=yes", nil
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
