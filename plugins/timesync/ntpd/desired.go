package main

import (
	"path"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// desired returns the files of the document. Lines of other files that defeat it are commented out.
func (c *configuration) desired(want settings.Settings) ([]sdk.FileSpec, error) {
	specs, err := c.dhcp(want, want.MakeStep != nil || len(want.Lines) > 0)
	if err != nil {
		return nil, err
	}
	keys, err := c.keyFile(want.Keys())
	if err != nil {
		return nil, err
	}
	if keys != nil {
		specs = append(specs, *keys)
	}
	own := render(want, c.keys)
	off, err := c.defeats(own, want)
	if err != nil {
		return nil, err
	}
	c.distance = c.maxDistance(own, off)
	if c.dropIns != "" {
		specs = append(specs, sdk.FileSpec{Path: path.Join(c.dropIns, ownName), Content: []byte(own), Mode: fileMode})
		own = ""
	}
	for i, f := range c.files {
		if i > 0 {
			own = ""
		}
		specs = append(specs, f.Edit(off, own))
	}
	return specs, nil
}
