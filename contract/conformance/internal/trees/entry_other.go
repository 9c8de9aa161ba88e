//go:build !linux

package trees

import "io/fs"

// system has nothing to add: owners and change times are not known here.
func (*Entry) system(fs.FileInfo) {}

// InodeOf returns nothing here: files have no number.
func InodeOf(fs.FileInfo) string { return "" }
