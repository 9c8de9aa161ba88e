package install

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/contract/report"
	"github.com/machineadm/machineadm/installer/manifest"
)

// part is an archive of a release, with its files that are installed.
type part struct {
	manifest.File
	chosen []manifest.Entry
}

// choose returns what is installed of a release on a platform: the archive with the command, and of the others those that have a
// plugin that is asked for. Without a name the plugins are those in the archive with the command, which prepare a node.
func choose(m *manifest.Manifest, os, arch string, with []string) ([]part, error) {
	var all []part
	var platforms []string
	for _, f := range m.Files {
		if f.Kind != manifest.KindArchive {
			continue
		}
		if platforms = append(platforms, f.OS+"/"+f.Arch); f.OS == os && f.Arch == arch {
			all = append(all, part{File: f, chosen: f.Contents})
		}
	}
	first := slices.IndexFunc(all, func(p part) bool {
		return slices.ContainsFunc(p.Contents, func(e manifest.Entry) bool { return path.Dir(e.Path) == "bin" })
	})
	if first < 0 {
		slices.Sort(platforms)
		return nil, &Error{
			Code:    report.ExitPrecondition,
			Problem: fmt.Sprintf("the release %s has no archive for %s/%s; it has: %s", m.Version, os, arch, strings.Join(slices.Compact(platforms), ", ")),
			Remedy:  "use a release for this platform", elsewhere: true,
		}
	}
	wanted, err := plugins(pluginsOf(all[first].Contents), pluginsOf(chosenOf(all)), with)
	if err != nil {
		return nil, err
	}
	for i, p := range all {
		all[i].chosen = slices.DeleteFunc(slices.Clone(p.Contents), func(e manifest.Entry) bool {
			dir, name := path.Split(e.Path)
			return (dir == "plugins/" || i != first) && !slices.Contains(wanted, name)
		})
	}
	return slices.DeleteFunc(all, func(p part) bool { return len(p.chosen) == 0 }), nil
}

// node, among the names of Options.With, means the plugins that prepare a node.
const node = "node"

// plugins returns the names of the plugins that are asked for.
func plugins(ofNode, all, with []string) ([]string, error) {
	if len(with) == 0 {
		return ofNode, nil
	}
	var wanted []string
	for _, name := range with {
		whole := product + "-" + strings.TrimPrefix(name, product+"-")
		switch {
		case name == node:
			wanted = append(wanted, ofNode...)
		case slices.Contains(all, whole):
			wanted = append(wanted, whole)
		default:
			return nil, &Error{
				Code: report.ExitUsage, Problem: fmt.Sprintf("--with: the release has no plugin %q; it has: %s", name, strings.Join(all, ", ")),
				Remedy: "correct the name; " + node + " means the plugins that prepare a node, which are installed without --with",
			}
		}
	}
	return wanted, nil
}

// pluginsOf returns the names of the plugins among files.
func pluginsOf(files []manifest.Entry) []string {
	names := []string{}
	for _, e := range files {
		if dir, name := path.Split(e.Path); dir == "plugins/" {
			names = append(names, name)
		}
	}
	return names
}

// chosenOf returns the files that are installed of all archives.
func chosenOf(parts []part) []manifest.Entry {
	var files []manifest.Entry
	for _, p := range parts {
		files = append(files, p.chosen...)
	}
	return files
}
