package main

import (
	"errors"
	"io/fs"

	"github.com/machineadm/machineadm/sdk"
)

// ownFile returns the change that gives a file of ours its content, or removes it when content is nil; nil when it is
// so already. A link or a device in its place is a Precondition: a link to /dev/null is how an administrator masks the
// file (sysctl.d(5), modules-load.d(5)).
//
// It is claimed as a part, because other documents that share a parameter change their part of it.
func ownFile(m sdk.Machine, d desired, name string, content []byte) (*sdk.Change, error) {
	part := &sdk.Part{Name: d.name, Content: content}
	if content == nil {
		return sdk.File(m, sdk.FileSpec{Path: name, Absent: true, Part: part})
	}
	info, err := m.FS.Lstat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && !info.Mode.IsRegular() {
		return nil, sdk.Precondition(name+" is not a regular file", "remove "+name+": somebody masked it or put a link there")
	}
	return sdk.File(m, sdk.FileSpec{Path: name, Content: content, Mode: 0o644, Part: part})
}
