// Package hooks finds the scripts of DHCP clients and network managers that give a time daemon other servers while it runs.
package hooks

import (
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/internal/lazyregexp"
	"github.com/machineadm/machineadm/plugins/timesync/internal/configfile"
	"github.com/machineadm/machineadm/sdk"
)

// Script is a script that gives a daemon other servers.
type Script struct{ Path, Text string }

// directories returns the directories of the scripts, as lists of which a name counts in the first one alone. Sources:
// dhclient-script(8), also of Red Hat; NetworkManager-dispatcher(8); networkd-dispatcher(8); dhcpcd-run-hooks(8); netconfig(8);
// interfaces(5); pppd(8); udhcpc.
func directories() [][]string {
	var all [][]string
	for _, alone := range []string{
		"/etc/dhcp/dhclient.d", "/etc/dhcp/dhclient-enter-hooks.d", "/etc/dhcp/dhclient-exit-hooks.d", "/etc/netconfig.d",
		"/usr/lib/dhcpcd/dhcpcd-hooks", "/usr/libexec/dhcpcd-hooks", "/etc/network/if-up.d", "/etc/ppp/ip-up.d",
		"/etc/udhcpc/post-bound", "/etc/udhcpc/post-renew",
	} {
		all = append(all, []string{alone})
	}
	for _, sub := range []string{"", "/pre-up.d", "/no-wait.d"} {
		all = append(all, []string{"/etc/NetworkManager/dispatcher.d" + sub, "/usr/lib/NetworkManager/dispatcher.d" + sub})
	}
	for _, state := range []string{"routable", "configured", "carrier", "degraded"} {
		all = append(all, []string{"/etc/networkd-dispatcher/" + state + ".d", "/usr/lib/networkd-dispatcher/" + state + ".d"})
	}
	return all
}

// files returns scripts that have a place of their own.
func files() []string {
	return []string{
		"/etc/dhcp/dhclient-up-hooks", "/etc/dhcp/dhclient-exit-hooks", "/etc/dhcpcd.enter-hook", "/etc/dhcpcd.exit-hook",
		"/usr/share/udhcpc/default.script",
	}
}

// comment matches the lines of a script that say nothing to a daemon.
var comment = lazyregexp.New(`(?m)^\s*#.*$`)

// Find returns the scripts whose text, without comments, adds matches.
func Find(m sdk.Machine, adds *regexp.Regexp) ([]Script, error) {
	names := files()
	for _, list := range directories() {
		var seen []string
		for _, directory := range list {
			here, err := m.FS.ReadDir(directory)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, name := range here {
				if !slices.Contains(seen, name) { // a link to /dev/null masks a script of the distribution
					seen, names = append(seen, name), append(names, path.Join(directory, name))
				}
			}
		}
	}
	var found []Script
	for _, name := range names {
		info, err := m.FS.Stat(name)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsRegular() {
			continue
		}
		var text []byte
		if err == nil {
			text, err = m.FS.ReadFile(name)
		}
		if err != nil {
			return nil, err
		}
		if text := comment().ReplaceAllString(string(text), ""); adds.MatchString(text) {
			found = append(found, Script{name, text})
		}
	}
	return found, nil
}

// networkFile has the variable PEERNTP of Red Hat, Azure Linux and Amazon Linux, and the files of interfaces override it.
const networkFile, interfaceFiles = "/etc/sysconfig/network", "/etc/sysconfig/network-scripts"

// TurnOff returns the file that keeps scripts from adding servers to a daemon, and warnings about scripts that no file keeps from
// it. If exclusive is false, the document shares the daemon with them: the file is as others wrote it.
func TurnOff(m sdk.Machine, scripts []Script, daemon string, exclusive bool) (specs []sdk.FileSpec, warnings []sdk.Warning, err error) {
	peer := regexp.MustCompile(`(?m)^\s*PEERNTP=["']?[^n"'\s]`)
	for _, s := range scripts {
		switch {
		case strings.Contains(s.Text, "PEERNTP") && specs == nil:
			if specs, err = configfile.SetVariable(m, networkFile, "PEERNTP=no", exclusive); err != nil {
				return nil, nil, err
			}
			names, err := m.FS.ReadDir(interfaceFiles)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
			for _, name := range names {
				name = path.Join(interfaceFiles, name)
				text, err := m.FS.ReadFile(name)
				if err == nil && exclusive && strings.Contains(name, "/ifcfg-") && peer.Match(text) {
					warnings = append(warnings, sdk.Warning{Message: name + " lets " + s.Path + " add servers of the network to " + daemon +
						", beside the document's; remove the line PEERNTP"})
				}
			}
		case !strings.Contains(s.Text, "PEERNTP") && exclusive:
			warnings = append(warnings, s.warning(daemon))
		}
	}
	return specs, warnings, nil
}

// warning returns what the operator must know of a script that adds servers to a document's.
func (s Script) warning(daemon string) sdk.Warning {
	hint := "; remove it, or the lines that add servers"
	if directory, ok := strings.CutPrefix(path.Dir(s.Path), "/usr/lib/"); ok && !strings.HasPrefix(directory, "dhcpcd") {
		hint = "; mask it: ln -s /dev/null " + path.Join("/etc", directory, path.Base(s.Path))
	}
	return sdk.Warning{Message: s.Path + " adds servers of the network to " + daemon + " while it runs, beside the document's" + hint}
}
