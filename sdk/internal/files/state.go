package files

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/machine"
)

// modeBits are the mode bits that a file can have.
const modeBits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky

// State is the state of a file; the zero value means absent.
type State struct {
	Exists  bool        `json:"exists"`
	Content []byte      `json:"content,omitempty"`
	Mode    fs.FileMode `json:"mode,omitempty"`
	// UID and GID are -1 where they are unmanaged (desired) or unknown (Windows).
	UID int `json:"uid"`
	GID int `json:"gid"`
}

// Matches reports whether the current state is as desired.
func (v State) Matches(want State) bool {
	if !v.Exists || !want.Exists {
		return v.Exists == want.Exists
	}
	return bytes.Equal(v.Content, want.Content) && !v.otherMode(want) && !v.otherOwner(want)
}

// otherMode compares modes. On Windows they only show whether others have access.
func (v State) otherMode(want State) bool {
	if v.UID >= 0 {
		return v.Mode != want.Mode
	}
	return private(want.Mode) && !private(v.Mode)
}

func private(mode fs.FileMode) bool { return mode != 0 && mode&0o007 == 0 }

func (v State) otherOwner(want State) bool {
	return v.UID >= 0 && (want.UID >= 0 && v.UID != want.UID || want.GID >= 0 && v.GID != want.GID)
}

// System is the part of the file system that the ready-made changes use.
type System interface {
	// Read returns the state of a file. Links are followed.
	Read(path string) (State, error)
	// Put writes or removes a file, in one step.
	Put(path string, want State) error
	// Permit returns a Precondition if a change of a file would reach one of these directories, or one that no plugin changes.
	Permit(path string, outside []string) error
	Lstat(name string) (machine.Info, error)
}

// Disk is the System of a machine.
type Disk struct{ *machine.FS }

// Read refuses anything but a regular file with a Precondition: the plugin must not replace it.
func (d Disk) Read(path string) (State, error) {
	info, err := d.Stat(path)
	if err == nil && !info.Mode.IsRegular() {
		return State{}, fault.Precondition(path+" is not a regular file", "move it away, then run again")
	}
	var content []byte
	if err == nil {
		content, err = d.ReadFile(path)
	}
	if errors.Is(err, fs.ErrNotExist) { // also if it was removed since Stat
		return State{}, nil
	}
	if err != nil {
		return State{}, fmt.Errorf("read a file: %w", err)
	}
	return State{Exists: true, Content: content, Mode: info.Mode & modeBits, UID: info.UID, GID: info.GID}, nil
}

// Permit checks the path that a write reaches, because a link of the machine can lead anywhere.
func (d Disk) Permit(path string, outside []string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	reached, err := d.Reaches(path, slices.Concat(outside, systemDirectories())...)
	if err != nil || reached == "" {
		return err
	}
	message := "the file is in or below " + reached + ", where this document must not write"
	if path != reached && !strings.HasPrefix(path, reached+"/") {
		message = "a link of this machine leads from the path of the file to " + reached + ", where this document must not write"
	}
	return fault.Final(fault.Precondition(message, "choose another path, or correct the link; namei -l "+path+" shows every link"))
}

// systemDirectories belong to the operating system (SPEC G-14) and to the kernel. A link to /dev/null is how an administrator masks a
// file, also in an image without devices, where a write through it would create that file.
func systemDirectories() []string { return []string{"/usr", "/dev", "/proc", "/sys"} }

// Put implements System.
func (d Disk) Put(path string, want State) error {
	at := path
	if !want.Exists { // a link itself is removed
		at = filepath.Dir(path)
	}
	if err := d.Permit(at, nil); err != nil {
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
