package sdk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"github.com/machineadm/machineadm/sdk/machine"
)

// modeBits are the bits of a mode that a file can be given.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// version is one state of a file: as it is, as it shall be, as it was. The zero version is: there is none.
type version struct {
	Exists  bool        `json:"exists"`
	Content []byte      `json:"content,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	// UID and GID are -1 where nobody asks (wanted) or nobody knows (Windows).
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// is says whether a file as it is satisfies what is wanted of it.
func (v version) is(want version) bool {
	if !v.Exists || !want.Exists {
		return v.Exists == want.Exists
	}
	return bytes.Equal(v.Content, want.Content) && !v.otherMode(want) && !v.otherOwner(want)
}

// otherMode compares modes. On Windows they say no more than whether others are kept out.
func (v version) otherMode(want version) bool {
	if v.UID >= 0 {
		return v.Mode != want.Mode
	}
	return keepsOut(want.Mode) && !keepsOut(v.Mode)
}

func keepsOut(mode fs.FileMode) bool { return mode != 0 && mode&0o007 == 0 }

func (v version) otherOwner(want version) bool {
	return v.UID >= 0 && (want.UID >= 0 && v.UID != want.UID || want.GID >= 0 && v.GID != want.GID)
}

// files is what the ready-made changes need of the file system.
type files interface {
	Stat(name string) (machine.Info, error)
	Lstat(name string) (machine.Info, error)
	ReadFile(name string) ([]byte, error)
	// put makes a file so, or removes it, in one step.
	put(path string, want version) error
}

type disk struct{ *machine.FS }

func (d disk) put(path string, want version) error {
	switch {
	case !want.Exists:
		return d.Remove(path)
	case want.UID >= 0 || want.GID >= 0:
		return d.WriteFileAs(path, want.Content, want.Mode, want.UID, want.GID)
	default:
		return d.WriteFile(path, want.Content, want.Mode)
	}
}

// look reads a file, links followed. Something else in its place is a Precondition: it is not ours to remove.
func look(f files, path string) (version, error) {
	info, err := f.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return version{}, nil
	}
	if err != nil {
		return version{}, fmt.Errorf("look at a file: %w", err)
	}
	if !info.Mode.IsRegular() {
		return version{}, Precondition(path+" is not a regular file", "move it away, then run again")
	}
	content, err := f.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) { // removed since
		return version{}, nil
	}
	if err != nil {
		return version{}, fmt.Errorf("look at a file: %w", err)
	}
	return version{
		Exists: true, Content: content, Mode: info.Mode & modeBits, UID: info.UID, GID: info.GID,
	}, nil
}
