package linuxjoin

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/machineadm/machineadm/sdk"
)

// snippets refuses a file of a site that decides what our file of this name and content decides. sssd merges the files of its directory in the order of their names, and
// the last value of an option counts; other options of the domain are for the site. Source: sssd.conf(5).
func snippets(m sdk.Machine, own string, content []byte) error {
	directory, ours := path.Split(own)
	names, err := m.FS.ReadDir(directory)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	want := options(content)
	for _, name := range names {
		if name == ours || strings.HasPrefix(name, ".") || path.Ext(name) != ".conf" {
			continue
		}
		file := directory + name
		text, err := m.FS.ReadFile(file)
		if err != nil {
			return err
		}
		for option, value := range options(text) {
			mine, ok := want[option]
			switch {
			case !ok || mine == value || option == "[sssd] services":
			case option == "[sssd] domains":
				return sdk.Precondition(file+" names domains, and sssd uses one of the two lists", "remove them there, or leave sssd to that file")
			case name > ours:
				return sdk.Precondition(file+" sets "+option+", and sssd reads it after "+directory+ours, "remove that line, or set sssd.manage to false")
			}
		}
	}
	return nil
}

// options returns the options of a file of sssd, by section and name.
func options(text []byte) map[string]string {
	all := map[string]string{}
	section := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		name, value, ok := strings.Cut(line, "=")
		switch {
		case line == "" || strings.ContainsRune("#;", rune(line[0])):
		case line[0] == '[':
			section = line
		case ok:
			all[section+" "+strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	}
	return all
}
