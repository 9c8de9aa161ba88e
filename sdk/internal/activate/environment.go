package activate

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/machineadm/machineadm/sdk/internal/fault"
	"github.com/machineadm/machineadm/sdk/internal/files"
	"github.com/machineadm/machineadm/sdk/machine"
)

// Environment is sdk.ServiceEnvironment.
type Environment struct{ Variables []Variable }

// Variable is sdk.Variable.
type Variable struct{ Name, Value string }

// addedName is a variable that lists the variables that machineadm added. It is stored with them, so that both change in
// one step: a list elsewhere becomes wrong when an administrator edits the variables.
const addedName = "MACHINEADM_ADDED"

func (v Variable) entry() string { return v.Name + "=" + v.Value }

// check refuses variables that a list of NAME=VALUE cannot represent. Its errors quote no value.
func (e Environment) check() error {
	for i, v := range e.Variables {
		var reason string
		switch {
		case v.Name == "" || strings.Trim(v.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") != "":
			reason = "its name is empty or has other characters than letters, digits and _"
		case sameName(v.Name, addedName):
			reason = "machineadm itself sets it"
		case strings.ContainsFunc(v.Value, func(r rune) bool { return r < ' ' || r == 0x7f }), !utf8.ValidString(v.Value):
			reason = "its value has control characters, or is not UTF-8"
		case v.Value == "":
			reason = "its value is empty, which on Windows means absent"
		case slices.ContainsFunc(e.Variables[:i], func(o Variable) bool { return sameName(o.Name, v.Name) }):
			reason = "it is given twice"
		default:
			continue
		}
		return fmt.Errorf("the variable %q of a service: %w: %s", v.Name, fs.ErrInvalid, reason)
	}
	return nil
}

func (e Environment) entries() []string {
	var all []string
	for _, v := range e.Variables {
		all = append(all, v.entry())
	}
	return all
}

// merge returns the current list with the desired variables in it. It is idempotent.
func (e Environment) merge(unit string, have []string) ([]string, error) {
	added := addedIn(have)
	var ours []string
	for _, v := range e.Variables {
		exists, differs := false, false
		for _, entry := range have {
			if name, value := splitEntry(entry); sameName(name, v.Name) {
				exists, differs = true, differs || value != v.Value
			}
		}
		switch {
		case hasName(added, v.Name) || !exists:
			ours = append(ours, v.Name)
		case differs:
			return nil, fault.Precondition("the service "+unit+" has the variable "+v.Name+" with another value, which was not set by machineadm",
				`remove it from the value Environment of HKLM\SYSTEM\CurrentControlSet\Services\`+unit+", then run again; or leave it out of the document")
		}
	}
	var list, done []string
	add := func(name string) {
		if entry := e.ownEntry(ours, name); entry != "" && !hasName(done, name) {
			list, done = append(list, entry), append(done, name)
		}
	}
	for _, entry := range have {
		if name, _ := splitEntry(entry); sameName(name, addedName) || hasName(added, name) {
			add(name)
		} else {
			list = append(list, entry)
		}
	}
	for _, name := range append(ours, addedName) {
		add(name)
	}
	return list, nil
}

// ownEntry returns the entry of a variable that machineadm sets, empty for any other.
func (e Environment) ownEntry(ours []string, name string) string {
	if sameName(name, addedName) && len(ours) > 0 {
		return addedName + "=" + strings.Join(ours, ",")
	}
	for _, v := range e.Variables {
		if sameName(v.Name, name) && hasName(ours, name) {
			return v.entry()
		}
	}
	return ""
}

// difference describes what changes. The values of others can be secrets, so of the current entries it shows only names.
func (e Environment) difference(unit string, have, want []string) string {
	text, prefix := "", "environment of "+unit+": "
	var kept []string
	for _, entry := range want {
		name, _ := splitEntry(entry)
		kept = append(kept, name)
		if !sameName(name, addedName) && !slices.Contains(have, entry) {
			text += prefix + entry + "\n"
		}
	}
	for _, entry := range have {
		if name, _ := splitEntry(entry); !hasName(kept, name) && !sameName(name, addedName) {
			text += prefix + name + " removed\n"
		}
	}
	if text == "" && !slices.Equal(have, want) {
		text = prefix + files.ContentDiffers
	}
	return text
}

func addedIn(have []string) []string {
	var added []string
	for _, entry := range have {
		if name, value := splitEntry(entry); sameName(name, addedName) {
			added = append(added, strings.Split(value, ",")...)
		}
	}
	return added
}

// splitEntry splits NAME=VALUE. A name may begin with =: Windows stores the current directories of its drives so.
func splitEntry(entry string) (name, value string) {
	if at := strings.IndexByte(entry[min(1, len(entry)):], '='); at >= 0 {
		return entry[:at+1], entry[at+2:]
	}
	return entry, ""
}

// sameName compares as Windows does for the names that check allows: with equal length, so that no letter of another script
// folds to one of them.
func sameName(a, b string) bool { return len(a) == len(b) && strings.EqualFold(a, b) }

func hasName(names []string, name string) bool {
	return slices.ContainsFunc(names, func(other string) bool { return sameName(other, name) })
}

// withEnvironment adds the environment of a service to a file system as one more file, so that an activation handles it
// like the others.
type withEnvironment struct {
	files.System
	environments machine.Environments
	unit         string
}

// environmentPath returns the path of that file, which is not absolute and so differs from every other.
func environmentPath(unit string) string { return "environment of " + unit }

// separator separates entries, which cannot contain it.
const separator = "\x00"

func joined(entries []string) files.State {
	return files.State{Exists: len(entries) > 0, Content: []byte(strings.Join(entries, separator)), UID: -1, GID: -1}
}

func entriesOf(v files.State) []string {
	if !v.Exists {
		return nil
	}
	return strings.Split(string(v.Content), separator)
}

// Lstat implements files: the environment is never a link.
func (w withEnvironment) Lstat(name string) (machine.Info, error) {
	if name == environmentPath(w.unit) {
		return machine.Info{}, fs.ErrNotExist
	}
	return w.System.Lstat(name)
}

func (w withEnvironment) Read(path string) (files.State, error) {
	if path != environmentPath(w.unit) {
		return w.System.Read(path)
	}
	entries, err := w.environments.Environment(w.unit)
	return joined(entries), err
}

func (w withEnvironment) Put(path string, want files.State) error {
	if path != environmentPath(w.unit) {
		return w.System.Put(path, want)
	}
	return w.environments.SetEnvironment(w.unit, entriesOf(want))
}
