package main

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
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
	m     sdk.Machine
	files []file // the main file first
	// dropIns is a directory of included files, empty when there is none.
	dropIns string
	// volatile are included directories outside /etc, such as /run/chrony-dhcp: their files are not edited.
	volatile []string
	// mixed is a directive that includes directories of both kinds, empty when there is none.
	mixed    string
	user     string
	warnings []sdk.Warning
}

type file struct {
	path string
	at   string // without links
	text []byte
	info machine.Info
}

// read finds and reads the configuration. Debian, Ubuntu, Alpine and Flatcar have it in /etc/chrony, all others in /etc;
// a unit can name another file with -f.
func read(m sdk.Machine, command []string) (*configuration, error) {
	c := &configuration{m: m}
	candidates := []string{"/etc/chrony/chrony.conf", "/etc/chrony.conf"}
	if i := slices.Index(command, "-f"); i >= 0 && i+1 < len(command) {
		candidates = command[i+1 : i+2]
	}
	for _, name := range candidates {
		err := c.add(name)
		if err == nil {
			return c, c.include(c.files[0])
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, sdk.Precondition("chronyd is installed, but its configuration file "+strings.Join(candidates, " or ")+" is missing",
		"reinstall the package chrony, then run again")
}

// add reads a file, unless another name of it is known: chronyd accepts a file that is included twice, or that includes itself.
func (c *configuration) add(name string) error {
	at, err := c.m.FS.Destination(name)
	if err != nil || slices.ContainsFunc(c.files, func(f file) bool { return f.at == at }) {
		return err
	}
	info, err := c.m.FS.Stat(name)
	if err != nil {
		return err
	}
	text, err := c.m.FS.ReadFile(name)
	if err == nil {
		c.files = append(c.files, file{name, at, text, info})
	}
	return err
}

// include reads the files that the main file includes, and finds the directory of drop-ins. chronyd accepts includes in
// included files as well; no distribution has them.
func (c *configuration) include(main file) error {
	for _, words := range directives.Parse(main.text) {
		var directory, pattern string
		switch {
		case words[0] == "user" && len(words) == 2:
			c.user = words[1]
		case words[0] == "include" && len(words) == 2:
			directory, pattern = path.Split(words[1])
			directory = path.Clean(directory)
		case words[0] == "confdir" && len(words) > 1:
			directory, pattern = words[1], "*.conf"
			for _, other := range words[2:] {
				if editable(other) != editable(directory) {
					c.mixed = strings.Join(words, " ")
				}
				if err := c.addAll(other, pattern); err != nil {
					return err
				}
			}
		}
		if directory == "" {
			continue
		}
		if pattern == "*.conf" && c.dropIns == "" && editable(directory) {
			c.dropIns = directory
		}
		if err := c.addAll(directory, pattern); err != nil {
			return err
		}
	}
	return nil
}

// editable reports whether the files of a directory are for the administrator.
func editable(directory string) bool {
	return directory == "/etc" || strings.HasPrefix(directory, "/etc/")
}

func (c *configuration) addAll(directory, pattern string) error {
	if !editable(directory) {
		c.volatile = append(c.volatile, directory)
		return nil
	}
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
		err := c.add(path.Join(directory, name))
		if errors.Is(err, fs.ErrNotExist) {
			err = sdk.Precondition(path.Join(directory, name)+" is a dangling link, with which chronyd does not start", "remove it, then run again")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// desired returns the files of the document. Lines of other files that contradict it are commented out, because chronyd uses
// the last one of some directives, and Debian 12 reads drop-ins first and Debian 13 last.
func (c *configuration) desired(want settings.Settings, extra []string) ([]sdk.FileSpec, error) {
	if c.mixed != "" && want.ReplacesSources() {
		return nil, sdk.Precondition(c.files[0].path+" has the line \""+c.mixed+"\", whose directories outside /etc can hold sources",
			"write one confdir line for each directory, then run again")
	}
	directory := path.Dir(c.files[0].path)
	keys := path.Join(directory, keyName)
	own := render(want, keys, extra)
	var specs []sdk.FileSpec
	if len(want.Keys()) > 0 {
		owner, err := c.owner()
		if err != nil {
			return nil, err
		}
		specs = append(specs, sdk.FileSpec{Path: keys, Content: []byte(renderKeys(want.Keys())), Mode: keyMode, Owner: owner, Sensitive: true})
	} else {
		specs = append(specs, sdk.FileSpec{Path: keys, Absent: true})
	}
	if c.dropIns != "" {
		specs = append(specs, sdk.FileSpec{Path: path.Join(c.dropIns, ownName), Content: []byte(own), Mode: ownMode})
	}
	off := c.contradicts(want)
	for i, f := range c.files {
		block := ""
		if i == 0 && c.dropIns == "" {
			block = own
		}
		text := directives.Edit(f.text, off, block)
		specs = append(specs, sdk.FileSpec{
			Path: f.path, Content: text, Mode: f.info.Mode.Perm(), Owner: &sdk.Owner{UID: f.info.UID, GID: f.info.GID},
		})
	}
	c.warnOfKeys(want)
	return specs, nil
}

// contradicts returns a function that reports whether a line of another author contradicts the document.
func (c *configuration) contradicts(want settings.Settings) func(words []string) bool {
	off := map[string]bool{
		"makestep": want.MakeStep != nil,
		"rtcsync":  want.RTCSync != nil && !*want.RTCSync,
		"rtcfile":  want.RTCSync != nil && *want.RTCSync,
		"keyfile":  len(want.Keys()) > 0,
		// the sources spread leap seconds, so chronyd must not insert them
		"leapsectz": want.Smeared, "leapseclist": want.Smeared,
	}
	for _, name := range []string{"server", "pool", "peer", "refclock", "sourcedir", "initstepslew"} {
		off[name] = want.ReplacesSources()
	}
	return func(words []string) bool {
		name := words[0]
		if want.ReplacesSources() && len(words) > 1 && (name == "include" || name == "confdir") {
			return slices.ContainsFunc(c.volatile, func(directory string) bool {
				return slices.Contains(words[1:], directory) || path.Dir(words[1]) == directory
			})
		}
		return off[name]
	}
}

// warnOfKeys warns about keys of another file, which chronyd no longer reads.
func (c *configuration) warnOfKeys(want settings.Settings) {
	if len(want.Keys()) == 0 {
		return
	}
	for _, f := range c.files {
		for _, words := range directives.Parse(f.text) {
			if words[0] != "keyfile" || len(words) != 2 {
				continue
			}
			text, err := c.m.FS.ReadFile(words[1])
			if err == nil && len(directives.Parse(text)) > 0 {
				c.warnings = append(c.warnings, sdk.Warning{
					Message: "the keys in " + words[1] + " are no longer used, because chronyd reads one key file and the document has keys of its own",
				})
			}
		}
	}
}

// owner is the user that chronyd runs as.
func (c *configuration) owner() (*sdk.Owner, error) {
	users := []string{"_chrony", "chrony"}
	if c.user != "" {
		users = []string{c.user}
	}
	for _, user := range users {
		uid, gid, err := c.m.FS.LookupOwner(user, "")
		if err == nil {
			return &sdk.Owner{UID: uid, GID: gid}, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, sdk.Precondition("the user of chronyd does not exist: "+strings.Join(users, ", "), "reinstall the package chrony, then run again")
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
