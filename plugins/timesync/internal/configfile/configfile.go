// Package configfile reads and edits configuration files that a document shares with other authors.
package configfile

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const fileMode = 0o644

// File is a file, or the state of a directory. It need not exist.
type File struct {
	Path string
	// At is the path without links.
	At     string
	Exists bool
	Text   []byte
	Info   machine.Info
}

// Open reads a file, which need not exist, or the state of a directory.
func Open(m sdk.Machine, name string) (File, error) {
	at, err := m.FS.Destination(name)
	if err != nil {
		return File{}, err
	}
	info, err := m.FS.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return File{Path: name, At: at}, nil
	}
	f := File{Path: name, At: at, Exists: err == nil, Info: info}
	if err == nil && !info.Mode.IsDir() {
		f.Text, err = m.FS.ReadFile(name)
	}
	return f, err
}

// Edit returns the file with the block of a document, and without the lines of others for which off is true. One that has nothing of others is removed with the last of the document.
func (f File) Edit(off func(words []string) bool, block string) sdk.FileSpec {
	text := directives.Edit(f.Text, off, block)
	if len(text) == 0 && (!f.Exists || len(f.Text) > 0) {
		return sdk.FileSpec{Path: f.Path, Absent: true}
	}
	// The owner stays, and is the owner of a new file before it exists: the claim of another document with the same content is equal.
	if !f.Exists {
		return sdk.FileSpec{Path: f.Path, Content: text, Mode: fileMode, Owner: &sdk.Owner{UID: os.Geteuid(), GID: os.Getegid()}}
	}
	return sdk.FileSpec{
		Path: f.Path, Content: text, Mode: f.Info.Mode.Perm(), Owner: &sdk.Owner{UID: f.Info.UID, GID: f.Info.GID},
	}
}

// SetVariable sets a variable of a shell script, or restores it.
func SetVariable(m sdk.Machine, name, assignment string, set bool) ([]sdk.FileSpec, error) {
	f, err := Open(m, name)
	if err != nil {
		return nil, err
	}
	if !set {
		return []sdk.FileSpec{f.Edit(func([]string) bool { return false }, "")}, nil
	}
	variable, _, _ := strings.Cut(strings.ToLower(assignment), "=")
	off := func(words []string) bool { return strings.HasPrefix(words[0], variable+"=") }
	return []sdk.FileSpec{f.Edit(off, assignment+"\n")}, nil
}

// Flags returns a command line with the options that files of variables add to it, as those in /etc/default and /etc/sysconfig.
func Flags(m sdk.Machine, command []string, files ...string) ([]string, error) {
	all := slices.Clone(command)
	for _, name := range files {
		f, err := Open(m, name)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(f.Text)) {
			variable, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			if slices.Contains([]string{"OPTIONS", "DAEMON_OPTS", "NTPD_OPTS"}, variable) {
				all = append(all, strings.Fields(strings.Trim(value, `"'`))...)
			}
		}
	}
	return all, nil
}

// Flag returns the value of the last option of a name, such as -f, empty when there is none.
func Flag(command []string, name string) (value string) {
	for i, word := range command {
		switch {
		case word == name && i+1 < len(command):
			value = command[i+1]
		case strings.HasPrefix(word, name+"/"):
			value = strings.TrimPrefix(word, name)
		}
	}
	return value
}
