package main

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/timesync/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// linkState has the NTP servers of all links of systemd-networkd. Source: sd_network_get_ntp.
const linkState = "/run/systemd/netif/state"

// checkFiles refuses files that keep the assignments of the document from taking effect: a link as its own file, and
// drop-ins of other authors that timesyncd reads later. Of each name it reads the one in the first directory, in the order
// of the names. Source: timesyncd.conf(5).
func checkFiles(m sdk.Machine, own []assignment, keep bool) error {
	info, err := m.FS.Lstat(ownFile)
	switch {
	case err == nil && !info.Mode.IsRegular():
		return sdk.Precondition(ownFile+" is not a regular file", "remove it, then run again; a link to /dev/null masks the file")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	files, err := others(m)
	for _, name := range files {
		if base := path.Base(name); err == nil && base > path.Base(ownFile) {
			err = checkLater(m, name, own, keep)
		}
	}
	return err
}

// others returns the files that timesyncd reads, without its own: of each name the one in the first directory.
func others(m sdk.Machine) ([]string, error) {
	var all []string
	seen := map[string]bool{path.Base(ownFile): true}
	for _, directory := range []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"} {
		all = append(all, directory+"/systemd/timesyncd.conf")
		directory += "/systemd/timesyncd.conf.d"
		names, err := m.FS.ReadDir(directory)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, name := range names {
			if path.Ext(name) == ".conf" && !seen[name] {
				seen[name], all = true, append(all, path.Join(directory, name))
			}
		}
	}
	return all, nil
}

// checkLater refuses a file that changes an assignment of the document. It may append servers if the document keeps servers of
// others.
func checkLater(m sdk.Machine, file string, own []assignment, keep bool) error {
	text, err := optional(m, file)
	for _, a := range parse(text) {
		appends := keep && strings.HasSuffix(a.key, "NTP") && a.value != ""
		if !appends && slices.ContainsFunc(own, func(o assignment) bool { return o.key == a.key }) {
			return sdk.Precondition(file+" sets "+a.key+", and timesyncd reads it after "+ownFile,
				"remove that line, or rename the file so that it sorts before "+path.Base(ownFile)+", then run again")
		}
	}
	return err
}

// optional returns the content of a file, nil when it is missing or masked by a link to /dev/null.
func optional(m sdk.Machine, name string) ([]byte, error) {
	text, err := m.FS.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, machine.ErrNotRegular) {
		return nil, nil
	}
	return text, err
}

// parse returns the assignments of the section [Time]. Source: systemd.syntax(7).
func parse(text []byte) []assignment {
	var all []assignment
	section := ""
	lines := strings.NewReplacer("\\\r\n", " ", "\\\n", " ", "\r", "\n").Replace(strings.TrimPrefix(string(text), "\ufeff"))
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		key, value, found := strings.Cut(line, "=")
		if strings.HasPrefix(line, "[") {
			section = line
		} else if found && section == "[Time]" { // a commented key keeps its # and equals no key of the document
			key = strings.Replace(strings.TrimSpace(key), "Servers", "NTP", 1) // an undocumented name
			all = append(all, assignment{key, strings.TrimSpace(value)})
		}
	}
	return all
}

// warningsOf returns warnings about the order in which timesyncd uses the servers of a document: the ones of its configuration, then the ones of
// links, and fallback servers only without any of these. Source: manager_connect in timesyncd-manager.c.
func warningsOf(want settings.Settings) []sdk.Warning {
	var p sdk.Plan
	if len(want.Sources) > 0 && len(want.Fallback) > 0 {
		p.Warn("spec.fallback", "timesyncd never uses these servers, because the document names others; list them in servers")
	}
	if len(want.Sources) > 0 && want.KeepDistributionSources {
		p.Warn("spec.keepDistributionSources", "timesyncd uses one server at a time, and servers of other files first")
	}
	return p.Warnings
}

// warningsFor returns warnings about servers of links.
func warningsFor(m sdk.Machine, want settings.Settings) ([]sdk.Warning, error) {
	var p sdk.Plan
	if !want.ReplacesSources() {
		return p.Warnings, nil
	}
	text, err := optional(m, linkState)
	for line := range strings.Lines(string(text)) {
		if servers, ok := strings.CutPrefix(strings.TrimSpace(line), "NTP="); ok && servers != "" {
			p.Warn("", "when no server of the document answers, timesyncd uses servers of systemd-networkd: "+servers+
				"; UseNTP=no in the .network file turns them off")
		}
	}
	return p.Warnings, err
}
