package machine

func (f *FS) rehearse([]PlannedFile) *FS { return f }

func (f *FS) differs(p PlannedFile) bool {
	_, given := f.rehearsal.given[p.Path]
	return !given
}
