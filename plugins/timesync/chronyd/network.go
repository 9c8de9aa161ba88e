package main

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/hooks"
	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// addsServers matches a script that sends servers to chronyd, itself or by the helper of chrony's packages, or that writes its
// configuration. Scripts that write files of a sourcedir do not add any, because that directive is off.
var addsServers = lazyregexp.New(`chrony[-_/]helper|(?s:chrony.*)\badd\W+(server|pool|peer)\b|` +
	`(>|\b(tee|cp|mv|sed -i)\b)[^\n]*chrony(/conf\.d/|[./]\S*\bconf\b)`)

// network turns off what adds servers of the network to chronyd while it runs, or warns about it.
func (c *configuration) network(want settings.Settings) ([]sdk.FileSpec, error) {
	scripts, err := hooks.Find(c.m, addsServers())
	if err != nil {
		return nil, err
	}
	specs, warnings, err := hooks.TurnOff(c.m, scripts, "chronyd", want.ReplacesSources())
	c.warnings = append(c.warnings, warnings...)
	if err == nil && want.ReplacesSources() {
		err = c.warnOfHelper()
	}
	return specs, err
}

// warnOfHelper warns about files whose servers the helper of chrony's packages adds when chronyd starts, and about its timers,
// which ask DNS for servers.
func (c *configuration) warnOfHelper() error {
	const servers, timer = "chrony.servers", "chrony-dnssrv@"
	for directory, prefix := range map[string]string{
		"/var/lib/dhclient": servers, "/var/lib/dhcp": servers, "/run/chrony-helper": servers, "/run/netconfig": servers,
		"/etc/systemd/system/timers.target.wants": timer,
	} {
		names, err := c.m.FS.ReadDir(directory)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, name := range names {
			if !strings.HasPrefix(name, prefix) {
				continue
			}
			message := path.Join(directory, name) + " has servers of the network that a helper adds to chronyd, beside the document's; remove it"
			if prefix == timer {
				message = path.Join(directory, name) + " adds servers of DNS to chronyd while it runs, beside the document's; " +
					"disable it: systemctl disable --now '" + name + "'"
			}
			c.warnings = append(c.warnings, sdk.Warning{Message: message})
		}
	}
	slices.SortFunc(c.warnings, func(a, b sdk.Warning) int { return strings.Compare(a.Message, b.Message) })
	return nil
}
