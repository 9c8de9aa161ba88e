package sdk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/machineadm/machineadm/sdk/machine"
)

// modeBits are the mode bits that a file can have.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// fileState is the state of a file; the zero value means absent.
type fileState struct {
	Exists  bool        `json:"exists"`
	Content []byte      `json:"content,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	// UID and GID are -1 where they are unmanaged (desired) or unknown (Windows).
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// matches reports whether the current state is as desired.
func (v fileState) matches(want fileState) bool {
	if !v.Exists || !want.Exists {
		return v.Exists == want.Exists
	}
	return bytes.Equal(v.Content, want.Content) && !v.otherMode(want) && !v.otherOwner(want)
}

// otherMode compares modes. On Windows they only show whether others have access.
func (v fileState) otherMode(want fileState) bool {
	if v.UID >= 0 {
		return v.Mode != want.Mode
	}
	return private(want.Mode) && !private(v.Mode)
}

func private(mode fs.FileMode) bool { return mode != 0 && mode&0o007 == 0 }

func (v fileState) otherOwner(want fileState) bool {
	return v.UID >= 0 && (want.UID >= 0 && v.UID != want.UID || want.GID >= 0 && v.GID != want.GID)
}

// files is the part of the file system that the ready-made changes use.
type files interface {
	// read returns the state of a file. Links are followed.
	read(path string) (fileState, error)
	// put writes or removes a file, in one step.
	put(path string, want fileState) error
	// permit returns a Precondition if a change of a file would reach one of these directories, or one that no plugin changes.
	permit(path string, outside []string) error
	Lstat(name string) (machine.Info, error)
}

type disk struct{ *machine.FS }

// read refuses anything but a regular file with a Precondition: the plugin must not replace it.
func (d disk) read(path string) (fileState, error) {
	info, err := d.Stat(path)
	if err == nil && !info.Mode.IsRegular() {
		return fileState{}, Precondition(path+" is not a regular file", "move it away, then run again")
	}
	var content []byte
	if err == nil {
		content, err = d.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // also if it was removed since Stat
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, fmt.Errorf("read a file: %w", err)
	}
	return fileState{Exists: true, Content: content, Mode: info.Mode & modeBits, UID: info.UID, GID: info.GID}, nil
}

// permit checks the path that a write reaches, because a link of the machine can lead anywhere.
func (d disk) permit(path string, outside []string) error { return permit(d.FS, path, outside) }

func (d disk) put(path string, want fileState) error {
	at := path
	if !want.Exists { // a link itself is removed
		at = filepath.Dir(path)
	}
	if err := d.permit(at, nil); err != nil {
		return err
	}
	switch {
	case !want.Exists:
		return d.Remove(path)
	case want.UID >= 0 || want.GID >= 0:
		return d.WriteFileAs(path, want.Content, want.Mode, want.UID, want.GID)
	default:
		return d.WriteFile(path, want.Content, want.Mode)
	}
}
