package resume

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/machineadm/machineadm/host/state"
	"github.com/machineadm/machineadm/internal/atomicfile"
)

// The units that send the report of a run.
const (
	reportService = "machineadm-report.service"
	reportTimer   = "machineadm-report.timer"
)

const (
	adminUnits  = "/etc/systemd/system"
	vendorUnits = "/usr/lib/systemd/system"
	wants       = "multi-user.target.wants"
	timerWants  = "timers.target.wants"
)

// Files returns the paths that a Starter writes outside of the state directory.
func Files() []string {
	return []string{
		adminUnits + "/" + UnitName, adminUnits + "/" + wants + "/" + UnitName,
		adminUnits + "/" + reportService, adminUnits + "/" + reportTimer, adminUnits + "/" + timerWants + "/" + reportTimer,
	}
}

// unit is a Starter that writes a systemd unit and the link that enables it. It needs no daemon-reload, because the next boot
// reads them.
type unit struct {
	root  string // of the file system; set by tests only
	name  string
	wants string // the directory of the link; empty for a unit that another one starts
	text  string
	// vendor means that a unit of the operating system, which uses the default directories, is sufficient.
	vendor bool
}

// NewStarter returns a Starter of argv. plain means that an enabled unit of the operating system runs the same command and is
// used instead.
func NewStarter(argv []string, stateDir string, plain bool) Starter {
	text := unitText(argv, stateDir, filepath.Join(stateDir, state.PendingFile))
	return &unit{name: UnitName, wants: wants, text: text, vendor: plain}
}

// Install implements Starter.
func (u *unit) Install(context.Context) error {
	if u.vendor && u.shipped() {
		return nil
	}
	path := u.at(adminUnits, u.name)
	switch there, err := ownerOf(path); {
	case err != nil:
		return err
	case there == foreign:
		return fmt.Errorf("%s was not written by machineadm and does not start at boot: enable it, or remove it", path)
	}
	dir := u.at(adminUnits, u.wants) // without a link, the unit's own
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := atomicfile.WriteFile(path, []byte(u.text), atomicfile.Options{Mode: 0o644, KeepLabel: true}); err != nil {
		return err
	}
	if u.wants == "" {
		return nil
	}
	return enable(dir, u.name)
}

func enable(wants, name string) (err error) {
	dir, err := os.Open(wants)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return atomicfile.Symlink(dir, adminUnits+"/"+name, name)
}

// Remove implements Starter. It removes the link first, which disables the unit.
func (u *unit) Remove(context.Context) error {
	path := u.at(adminUnits, u.name)
	if there, err := ownerOf(path); err != nil || there != own {
		return err
	}
	names := []string{path}
	if u.wants != "" {
		names = []string{u.at(adminUnits, u.wants, u.name), path}
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// shipped reports whether the operating system or its administrator provides an enabled unit of this name.
func (u *unit) shipped() bool {
	switch there, err := ownerOf(u.at(adminUnits, u.name)); {
	case err != nil || there == own:
		return false
	case there == foreign:
		masked := func() bool {
			to, err := os.Readlink(u.at(adminUnits, u.name))
			return err == nil && to == os.DevNull
		}
		return !masked() && (u.enabled(adminUnits) || u.enabled(vendorUnits))
	}
	there, err := ownerOf(u.at(vendorUnits, u.name))
	return err == nil && there != absent && (u.enabled(adminUnits) || u.enabled(vendorUnits))
}

// enabled reports whether a directory of units enables the unit.
func (u *unit) enabled(units string) bool {
	_, err := os.Lstat(u.at(units, u.wants, u.name))
	return err == nil
}

func (u *unit) at(parts ...string) string {
	return filepath.Join(append([]string{u.root}, parts...)...)
}

// owner is the writer of a unit file.
type owner int

const (
	absent owner = iota
	own          // it begins with ownMark
	foreign
)

func ownerOf(path string) (owner, error) {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return absent, nil
	case err != nil:
		return absent, err
	case !info.Mode().IsRegular():
		return foreign, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return absent, err
	}
	if strings.HasPrefix(string(text), ownMark) {
		return own, nil
	}
	return foreign, nil
}
