package pluginv1

import (
	"io/fs"
	"slices"

	"github.com/machineadm/machineadm/contract/pluginv1/pb"
)

// The bits of a mode beyond its permissions, as chmod(2) has them.
const (
	setuid = 0o4000
	setgid = 0o2000
	sticky = 0o1000
)

func filesToPB(files []PlannedFile) []*pb.PlannedFile {
	var out []*pb.PlannedFile
	for _, f := range files {
		mode := uint32(f.Mode.Perm())
		for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: setuid, fs.ModeSetgid: setgid, fs.ModeSticky: sticky} {
			if f.Mode&flag != 0 {
				mode |= bit
			}
		}
		out = append(out, &pb.PlannedFile{
			Path: f.Path, Absent: f.Absent, Directory: f.Directory, Link: f.Link, Content: f.Content, Mode: mode,
			Uid: uint32(max(0, f.UID)), Gid: uint32(max(0, f.GID)), //nolint:gosec // chown(2) has 32 bits
		})
	}
	return out
}

func filesFromPB(files []*pb.PlannedFile) []PlannedFile {
	var out []PlannedFile
	for _, f := range files {
		mode := fs.FileMode(f.GetMode()) & fs.ModePerm
		for flag, bit := range map[fs.FileMode]uint32{fs.ModeSetuid: setuid, fs.ModeSetgid: setgid, fs.ModeSticky: sticky} {
			if f.GetMode()&bit != 0 {
				mode |= flag
			}
		}
		out = append(out, PlannedFile{
			Path: f.GetPath(), Absent: f.GetAbsent(), Directory: f.GetDirectory(), Link: f.GetLink(), Content: f.GetContent(), Mode: mode,
			UID: int(f.GetUid()), GID: int(f.GetGid()),
		})
	}
	return out
}

// unlisted removes from a plan what the runtime did not ask for.
func unlisted(p Plan) Plan {
	p.Files, p.Changes = nil, slices.Clone(p.Changes)
	for i := range p.Changes {
		p.Changes[i].Listed = false
	}
	return p
}
