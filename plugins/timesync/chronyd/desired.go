package main

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/directives"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// desired returns the files of the document. Lines of other files that defeat it are commented out: chronyd uses the last one
// of most directives, and Debian 12 reads drop-ins first and Debian 13 last.
func (c *configuration) desired(want settings.Settings) ([]sdk.FileSpec, error) {
	if c.mixed != "" && want.ReplacesSources() {
		return nil, sdk.Precondition(c.files[0].path+" has the line \""+c.mixed+"\", whose directories outside /etc can hold sources",
			"write one confdir line for each directory, then run again")
	}
	directory := path.Dir(c.files[0].path)
	keys := path.Join(directory, keyName)
	own := render(want, keys)
	var specs []sdk.FileSpec
	if len(want.Keys()) > 0 {
		owner, err := c.owner(want)
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
	off, err := c.defeats(own, want)
	if err != nil {
		return nil, err
	}
	c.distance = c.maxDistance(own, off)
	for i, f := range c.files {
		if f.volatile {
			continue
		}
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
	network, err := c.network(want)
	return slices.Concat(specs, network), err
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

// warnOfPoints warns of a file of points that is not there, without which chronyd does not start. An earlier document can make it. Source: tempcomp.c.
func (c *configuration) warnOfPoints(want settings.Settings) {
	for _, l := range want.Lines {
		words := l.Words()
		if len(words) != 4 || words[0] != "tempcomp" {
			continue
		}
		if _, err := c.m.FS.Stat(words[3]); errors.Is(err, fs.ErrNotExist) {
			c.warnings = append(c.warnings, sdk.Warning{
				Field: string(l.Field), Message: "names a file of points that is not there, without which chronyd does not start: make " + words[3] + " first, or give T0 and three coefficients",
			})
		}
	}
}

// owner is the user that chronyd runs as.
func (c *configuration) owner(want settings.Settings) (*sdk.Owner, error) {
	users := []string{"_chrony", "chrony"}
	for _, l := range want.Lines {
		if words := l.Words(); len(words) == 2 && words[0] == "user" {
			c.user = words[1]
		}
	}
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
