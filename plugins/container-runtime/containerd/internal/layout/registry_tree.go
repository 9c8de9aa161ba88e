package layout

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// registryTree is what becomes of the registries: the files of the document, and of an earlier version of it what is removed. A
// directory that is empty then is removed last.
type registryTree struct {
	Files       []sdk.FileSpec
	directories []string
}

// planCerts finds out what the tree of registries has to become, with a warning of each file of other people that is
// replaced.
func Registries(m sdk.Machine, want settings.Desired, r settings.Release, result *sdk.Plan) (registryTree, error) {
	t := registryTree{Files: RegistryFiles(want, r)}
	var wanted []string
	for _, spec := range t.Files {
		wanted = append(wanted, spec.Path)
		if filepath.Base(spec.Path) == hostsFile {
			if text, err := m.FS.ReadFile(spec.Path); err == nil && !managed(text) {
				result.Warn("spec.registries", spec.Path+" was not written by machineadm: it is replaced")
			}
		}
	}
	certs := settings.PathsOf(m.Target.OS).RegistryFiles
	hosts, err := listing(m, certs)
	if err != nil {
		return t, err
	}
	for _, host := range hosts {
		if err := t.stale(m, filepath.Join(certs, host), wanted); err != nil {
			return t, err
		}
	}
	return t, nil
}

// stale empties the directory of a registry of what is ours and no longer wanted, and removes it when that was all:
// while it is there, containerd looks no further, not even at _default.
func (t *registryTree) stale(m sdk.Machine, directory string, wanted []string) error {
	names, err := listing(m, directory)
	if err != nil {
		return err
	}
	if ours, err := isOurs(m, directory, names); err != nil || !ours {
		return err
	}
	left := len(names)
	// The hosts.toml first: what it names must not be missing while it is there.
	for _, name := range slices.SortedFunc(slices.Values(names), func(a, b string) int { return strings.Compare(rank(a), rank(b)) }) {
		path := filepath.Join(directory, name)
		if slices.Contains(wanted, path) || name != hostsFile && !strings.HasPrefix(name, hostFilePrefix) {
			continue
		}
		t.Files = append(t.Files, sdk.FileSpec{Path: path, Absent: true})
		left--
	}
	wantedHere := slices.ContainsFunc(wanted, func(path string) bool { return filepath.Dir(path) == directory })
	if left == 0 && !wantedHere {
		t.directories = append(t.directories, directory)
	}
	return nil
}

// removals are the changes that remove the empty directories.
func (t registryTree) Removals(m sdk.Machine) []*sdk.Change {
	var changes []*sdk.Change
	for _, directory := range t.directories {
		changes = append(changes, &sdk.Change{
			ID: "directory:" + directory, Summary: "remove the directory " + directory, Diff: directory + ": removed\n",
			Do: func(context.Context, sdk.Progress) error { return m.FS.Remove(directory) },
		})
	}
	return changes
}

// isOurs says whether machineadm has made the directory of a registry. One without a hosts.toml is what an interrupted
// run has left, when nothing of other people is in it.
func isOurs(m sdk.Machine, directory string, names []string) (bool, error) {
	info, err := m.FS.Stat(directory)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() { // a link to nowhere, or a file
		return false, nil
	}
	if err != nil {
		return false, err
	}
	text, err := m.FS.ReadFile(filepath.Join(directory, hostsFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return !slices.ContainsFunc(names, func(name string) bool { return !strings.HasPrefix(name, hostFilePrefix) }), nil
	case errors.Is(err, machine.ErrNotRegular):
		return false, nil
	}
	return managed(text), err
}

func rank(name string) string {
	if name == hostsFile {
		return ""
	}
	return name
}
