package main

import (
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// dhcp turns off the servers of DHCP. On Debian they replace the configuration: ntpd reads a copy that has no other sources.
// Red Hat adds them to the main file. Others reports that the document has directives beside sources.
func (c *configuration) dhcp(want settings.Settings, others bool) ([]sdk.FileSpec, error) {
	debian := c.unit == ntpsecUnit
	name, hint := "/run/ntp.conf.dhcp", "remove it and the scripts named ntp below /etc/dhcp and /etc/NetworkManager"
	if debian {
		name, hint = "/run/ntpsec/ntp.conf.dhcp", "name servers in the document, or set IGNORE_DHCP=\"yes\" in /etc/default/ntpsec"
	}
	replaced, err := open(c.m, name)
	if err != nil {
		return nil, err
	}
	if replaced.exists && (others || want.HasSources()) && (!debian || !want.HasSources()) {
		return nil, sdk.Precondition("ntpd reads "+name+", which has the servers of DHCP, in place of "+c.files[0].path,
			hint+", then run again")
	}
	if debian {
		if want.HasSources() && want.KeepDistributionSources {
			c.warnings = append(c.warnings, sdk.Warning{
				Field:   "spec.keepDistributionSources",
				Message: "the servers of DHCP are not used: ntpd would use them without those of the document",
			})
		}
		return c.variable("/etc/default/ntpsec", `IGNORE_DHCP="yes"`, want.HasSources())
	}
	script, err := open(c.m, "/etc/dhcp/dhclient.d/ntp.sh")
	if err != nil || !script.exists {
		return nil, err
	}
	return c.variable("/etc/sysconfig/network", "PEERNTP=no", want.ReplacesSources())
}

// variable sets a variable of a shell script, or restores it.
func (c *configuration) variable(name, assignment string, set bool) ([]sdk.FileSpec, error) {
	f, err := open(c.m, name)
	if err != nil {
		return nil, err
	}
	if !set {
		return []sdk.FileSpec{edited(f, func([]string) bool { return false }, "")}, nil
	}
	variable, _, _ := strings.Cut(strings.ToLower(assignment), "=")
	off := func(words []string) bool { return strings.HasPrefix(words[0], variable+"=") }
	return []sdk.FileSpec{edited(f, off, assignment+"\n")}, nil
}
