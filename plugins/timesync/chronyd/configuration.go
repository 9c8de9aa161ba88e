package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/machineadm/machineadm/plugins/timesync/internal/configfile"
	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

const (
	ownName = "machineadm.conf"
	ownMode = 0o644
	keyName = "machineadm.keys"
	keyMode = 0o600
)

// configuration is what chronyd reads: the main file, and the files that it includes.
type configuration struct {
	m sdk.Machine
	// files are in the order in which chronyd begins to read them, the main file first.
	files []file
	// dropIns is a directory of included files, empty when there is none, and before the number of files ahead of it.
	dropIns string
	before  int
	// mixed is a directive that includes directories below and outside /etc, empty when there is none.
	mixed string
	user  string
	// distance is the root distance beyond which chronyd ignores a server, once desired has returned.
	distance time.Duration
	warnings []sdk.Warning
}

type file struct {
	path string
	at   string // without links
	text []byte
	info machine.Info
	// volatile reports that a program generates the file, outside /etc as in /run: it is not edited.
	volatile bool
}

// read finds and reads the configuration. Debian, Ubuntu, Alpine and Flatcar have it in /etc/chrony, all others in /etc;
// the unit, or the options in its file of variables, can name another file with -f.
func read(m sdk.Machine, command []string) (*configuration, error) {
	c := &configuration{m: m}
	candidates := []string{"/etc/chrony/chrony.conf", "/etc/chrony.conf"}
	command, err := configfile.Flags(m, command, "/etc/default/chrony", "/etc/sysconfig/chronyd")
	if err != nil {
		return nil, err
	}
	if name := configfile.Flag(command, "-f"); name != "" {
		candidates = []string{name}
		if !editable(name) {
			return nil, sdk.Precondition("chronyd reads "+name+", which a program generates, because its options have -f",
				"remove the option from the unit or from its file of variables, then run again")
		}
	}
	for _, name := range candidates {
		err := c.add(name, false, 0)
		if err == nil {
			return c, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, sdk.Precondition("chronyd is installed, but its configuration file "+strings.Join(candidates, " or ")+" is missing",
		"reinstall the package chrony, then run again")
}

// mostIncludes is the depth to which chronyd reads files that files include.
const mostIncludes = 10

// add reads a file and those that it includes, unless another name of it is known: chronyd accepts a file that is included
// twice, or that includes itself.
func (c *configuration) add(name string, volatile bool, depth int) error {
	at, err := c.m.FS.Destination(name)
	if err != nil || depth > mostIncludes || slices.ContainsFunc(c.files, func(f file) bool { return f.at == at }) {
		return err
	}
	info, err := c.m.FS.Stat(name)
	if err != nil {
		return err
	}
	text, err := c.m.FS.ReadFile(name)
	if err != nil {
		return err
	}
	c.files = append(c.files, file{name, at, text, info, volatile})
	for _, words := range directives.Parse(directives.Original(text)) {
		if words[0] == "user" && len(words) == 2 {
			c.user = words[1]
		}
		if err := c.include(words, volatile, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// includes returns the directories and the pattern of names that a directive includes.
func includes(words []string) (directories []string, pattern string) {
	switch {
	case words[0] == "include" && len(words) == 2:
		directory, pattern := path.Split(words[1])
		return []string{path.Clean(directory)}, pattern
	case words[0] == "confdir":
		return words[1:], "*.conf"
	}
	return nil, ""
}

// include reads the files that a directive includes, and finds the directory of drop-ins.
func (c *configuration) include(words []string, volatile bool, depth int) error {
	directories, pattern := includes(words)
	for _, directory := range directories {
		if strings.ContainsAny(directory, "*?[") || !path.IsAbs(directory) {
			return sdk.Precondition(c.files[0].path+" or a file that it includes has the line \""+strings.Join(words, " ")+
				"\", whose directory has no fixed name", "write one line for each directory, then run again")
		}
		if editable(directory) != editable(directories[0]) {
			c.mixed = strings.Join(words, " ")
		}
		volatile := volatile || !editable(directory)
		if pattern == "*.conf" && c.dropIns == "" && !volatile {
			c.dropIns, c.before = directory, len(c.files)
		}
		if err := c.addAll(directory, pattern, volatile, depth); err != nil {
			return err
		}
	}
	return nil
}

// editable reports whether the files of a directory are for the administrator.
func editable(directory string) bool {
	return directory == "/etc" || strings.HasPrefix(directory, "/etc/")
}

func (c *configuration) addAll(directory, pattern string, volatile bool, depth int) error {
	names, err := c.m.FS.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		if matched, _ := path.Match(pattern, name); !matched || name == ownName { // a bad pattern matches nothing, as in chronyd
			continue
		}
		err := c.add(path.Join(directory, name), volatile, depth)
		if errors.Is(err, fs.ErrNotExist) {
			err = sdk.Precondition(path.Join(directory, name)+" is a dangling link, with which chronyd does not start", "remove it, then run again")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// check lets chronyd read the files of the document in place of those that they replace.
func (c *configuration) check(ctx context.Context, m sdk.Machine, candidates map[string]string) error {
	arguments := []string{"-p"}
	main := c.files[0].path
	if name := candidates[main]; name != "" {
		main = name
	}
	arguments = append(arguments, "include "+main)
	for name, candidate := range candidates {
		if name != c.files[0].path && path.Ext(name) == ".conf" {
			arguments = append(arguments, "include "+candidate)
		}
	}
	slices.Sort(arguments[2:])
	_, err := m.Commands.Run(ctx, machine.Command{Name: "chronyd", Args: arguments})
	return err
}
