package machine

import (
	"maps"
	"slices"
)

// Rehearsal returns the machine as the plans of earlier documents leave it, for a plan that changes nothing: a change of its files is
// checked as the change itself is, and kept in memory. What runs on a live machine stays as it is now. Windows: the same machine.
func (m Machine) Rehearsal(planned []PlannedFile) Machine {
	m.FS = m.FS.rehearse(planned)
	if m.offline {
		m.Services = imageServices(m.FS, m.Target.Init)
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
