package machine

import (
	"maps"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1"
)

// PlannedFile is the state in which planned changes leave a file, a directory or a link.
type PlannedFile = pluginv1.PlannedFile

// rehearsal has the files that planned changes leave, by paths without links. The files of an FS with a rehearsal are those of the
// machine below these, and its changes go into the rehearsal alone.
type rehearsal struct {
	files map[string]PlannedFile
	given map[string]PlannedFile // by the plans before this one
}

// Rehearsal returns the machine as the plans of earlier documents leave it, for a plan that changes nothing: a change of its files is
// checked as the change itself is, and kept in memory. What runs on a live machine stays as it is now. Windows: the same machine.
func (m Machine) Rehearsal(planned []PlannedFile) Machine {
	m.FS = m.FS.rehearse(planned)
	if m.offline {
		m.Services = imageServices(m.FS)
	}
	return m
}

// Rehearses reports whether changes of this file system go into memory.
func (f *FS) Rehearses() bool { return f.rehearsal != nil }

// Rehearsed returns what the changes of this file system leave, sorted by path.
func (f *FS) Rehearsed() []PlannedFile {
	if f.rehearsal == nil {
		return nil
	}
	var all []PlannedFile
	for _, path := range slices.Sorted(maps.Keys(f.rehearsal.files)) {
		if p := f.rehearsal.files[path]; f.differs(p) {
			all = append(all, p)
		}
	}
	return all
}
