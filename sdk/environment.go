package sdk

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/sdk/machine"
)

// ServiceEnvironment are variables that a service shall find in its environment. Everybody can read them where they are
// kept: no secret goes there.
//
// What an earlier run added and nobody asks for any more is removed. What others have set stays as it is, where it is;
// one of them that has another value than asked for is a Precondition. One document describes the variables of a service,
// as one describes a file.
type ServiceEnvironment struct{ Variables []Variable }

// Variable is one of them. Windows tells names from each other without regard to case.
type Variable struct{ Name, Value string }

// addedName is a variable that lists those which were added. It stands beside them, so that they and the knowledge whose
// they are change in one step, and neither outlives the other: what is remembered elsewhere is wrong as soon as somebody
// edits the list, and a name alone does not tell who set it.
const addedName = "MACHINEADM_ADDED"

func (v Variable) entry() string { return v.Name + "=" + v.Value }

// check finds what would be another variable, or none, in a list of NAME=VALUE. It quotes no value.
func (e ServiceEnvironment) check() error {
	for i, v := range e.Variables {
		var reason string
		switch {
		case v.Name == "" || strings.Trim(v.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "":
			reason = "its name is empty or has other characters than letters, digits and _"
		case sameName(v.Name, addedName):
			reason = "it is what machineadm itself sets"
		case strings.ContainsFunc(v.Value, func(r rune) bool { return r < ' ' || r == 0x7f }), !utf8.ValidString(v.Value):
			reason = "its value holds control characters, or is no UTF-8"
		case v.Value == "":
			reason = "its value is empty, which is the same as none on Windows"
		case slices.ContainsFunc(e.Variables[:i], func(o Variable) bool { return sameName(o.Name, v.Name) }):
			reason = "it is given twice"
		default:
			continue
		}
		return fmt.Errorf("the variable %q of a service: %w: %s", v.Name, fs.ErrInvalid, reason)
	}
	return nil
}

// item makes it a part of an activation.
func (e ServiceEnvironment) item(unit string) item {
	return item{
		path: environmentPath(unit),
		want: func(have version) (version, error) {
			list, err := e.merge(unit, have.entries())
			return joined(list), err
		},
		diff: func(have, want version) string { return e.difference(unit, have.entries(), want.entries()) },
	}
}

func (e ServiceEnvironment) entries() []string {
	var all []string
	for _, v := range e.Variables {
		all = append(all, v.entry())
	}
	return all
}

// merge puts the variables into the list that is there. What it makes of its own result is the same.
func (e ServiceEnvironment) merge(unit string, have []string) ([]string, error) {
	added := addedIn(have)
	var ours []string
	for _, v := range e.Variables {
		theirs, other := false, false
		for _, entry := range have {
			name, value := divide(entry)
			theirs = theirs || sameName(name, v.Name)
			other = other || sameName(name, v.Name) && value != v.Value
		}
		switch {
		case holds(added, v.Name) || !theirs:
			ours = append(ours, v.Name)
		case other:
			return nil, Precondition("the service "+unit+" has the variable "+v.Name+" with another value, which was not set by machineadm",
				`remove it from the value Environment of HKLM\SYSTEM\CurrentControlSet\Services\`+unit+", then run again; or leave it out of the document")
		}
	}
	var list, done []string
	for _, entry := range have {
		name, _ := divide(entry)
		if !sameName(name, addedName) && !holds(added, name) {
			list = append(list, entry)
		} else if text := e.own(ours, name); text != "" && !holds(done, name) {
			list, done = append(list, text), append(done, name)
		}
	}
	for _, name := range slices.Concat(ours, []string{addedName}) {
		if text := e.own(ours, name); text != "" && !holds(done, name) {
			list = append(list, text)
		}
	}
	return list, nil
}

// own is the entry of a name that is ours, empty when it is not.
func (e ServiceEnvironment) own(ours []string, name string) string {
	if sameName(name, addedName) && len(ours) > 0 {
		return addedName + "=" + strings.Join(ours, ",")
	}
	for _, v := range e.Variables {
		if sameName(v.Name, name) && holds(ours, name) {
			return v.entry()
		}
	}
	return ""
}

// difference says what changes. The list may hold other people's secrets, so of what is there only names are shown.
func (e ServiceEnvironment) difference(unit string, have, want []string) string {
	text := ""
	for _, entry := range want {
		if name, _ := divide(entry); !sameName(name, addedName) && !slices.Contains(have, entry) {
			text += "environment of " + unit + ": " + entry + "\n"
		}
	}
	for _, entry := range have {
		name, _ := divide(entry)
		stays := slices.ContainsFunc(want, func(other string) bool { kept, _ := divide(other); return sameName(name, kept) })
		if !stays && !sameName(name, addedName) {
			text += "environment of " + unit + ": " + name + " removed\n"
		}
	}
	if text == "" && !slices.Equal(have, want) {
		text = "environment of " + unit + ": " + contentDiffers
	}
	return text
}

func addedIn(have []string) []string {
	var added []string
	for _, entry := range have {
		if name, value := divide(entry); sameName(name, addedName) {
			added = append(added, strings.Split(value, ",")...)
		}
	}
	return added
}

// divide splits NAME=VALUE. A name may begin with =: Windows keeps the current directories of its drives so.
func divide(entry string) (name, value string) {
	if at := strings.IndexByte(entry[min(1, len(entry)):], '='); at >= 0 {
		return entry[:at+1], entry[at+2:]
	}
	return entry, ""
}

// sameName compares as Windows does, as far as the names go that can be asked for: of equal length, so that no letter of
// another script folds to one of them.
func sameName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }

func holds(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return sameName(other, name) })
}

// withEnvironment is the file system with one file more, which is the environment of a service: so it is looked at,
// swapped, recorded and put back in the way of all others.
type withEnvironment struct {
	files
	environments machine.Environments
	unit         string
}

// environmentPath is no absolute path, so that no file has it.
func environmentPath(unit string) string { return "environment of " + unit }

// separator stands between entries, which cannot hold it.
const separator = "\x00"

func joined(entries []string) version {
	return version{Exists: len(entries) > 0, Content: []byte(strings.Join(entries, separator)), UID: -1, GID: -1}
}

func (v version) entries() []string {
	if !v.Exists {
		return nil
	}
	return strings.Split(string(v.Content), separator)
}

// Stat implements files.
func (w withEnvironment) Stat(name string) (machine.Info, error) {
	if name != environmentPath(w.unit) {
		return w.files.Stat(name)
	}
	content, err := w.ReadFile(name)
	return machine.Info{UID: -1, GID: -1, Size: int64(len(content))}, err
}

// Lstat implements files.
func (w withEnvironment) Lstat(name string) (machine.Info, error) {
	if name != environmentPath(w.unit) {
		return w.files.Lstat(name)
	}
	return w.Stat(name)
}

// ReadFile implements files.
func (w withEnvironment) ReadFile(name string) ([]byte, error) {
	if name != environmentPath(w.unit) {
		return w.files.ReadFile(name)
	}
	entries, err := w.environments.Environment(w.unit)
	if err == nil && len(entries) == 0 {
		err = &fs.PathError{Op: "read", Path: name, Err: fs.ErrNotExist}
	}
	return joined(entries).Content, err
}

func (w withEnvironment) put(path string, want version) error {
	if path != environmentPath(w.unit) {
		return w.files.put(path, want)
	}
	return w.environments.SetEnvironment(w.unit, want.entries())
}
