package layout

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machine"
)

// RegistryTree is the change of the tree of registries: the files to write and to remove, and then the directories to
// remove.
type RegistryTree struct {
	Files       []sdk.FileSpec
	directories []string
}

// isOurs reports whether machineadm made the directory of a registry. An interrupted run leaves one that has files of ours
// alone and no hosts.toml.
func isOurs(m sdk.Machine, directory string, names []string) (bool, error) {
	info, err := m.FS.Stat(directory)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsDir() { // a dangling link, or a file
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

// stale removes the files of ours that are no longer wanted from the directory of a registry, and the directory where
// nothing else is in it: while it exists, containerd does not look at _default.
func (t *RegistryTree) stale(m sdk.Machine, directory string, wanted []string) error {
	names, err := listing(m, directory)
	if err != nil {
		return err
	}
	if ours, err := isOurs(m, directory, names); err != nil || !ours {
		return err
	}
	left := len(names)
	// The hosts.toml first: the files that it names must exist while it does.
	if at := slices.Index(names, hostsFile); at > 0 {
		names = slices.Insert(slices.Delete(slices.Clone(names), at, at+1), 0, hostsFile)
	}
	for _, name := range names {
		path := filepath.Join(directory, name)
		if !slices.Contains(wanted, path) && (name == hostsFile || strings.HasPrefix(name, hostFilePrefix)) {
			t.Files = append(t.Files, sdk.FileSpec{Path: path, Absent: true})
			left--
		}
	}
	if left == 0 && !slices.ContainsFunc(wanted, func(path string) bool { return filepath.Dir(path) == directory }) {
		t.directories = append(t.directories, directory)
	}
	return nil
}

// Registries plans the tree of registries. It warns of each foreign file that it replaces.
func Registries(m sdk.Machine, want settings.Desired, r settings.Release, result *sdk.Plan) (RegistryTree, error) {
	t := RegistryTree{Files: RegistryFiles(want, r)}
	var wanted []string
	for _, spec := range t.Files {
		wanted = append(wanted, spec.Path)
		if filepath.Base(spec.Path) == hostsFile {
			if text, err := m.FS.ReadFile(spec.Path); err == nil && !managed(text) {
				result.Warn("spec.registries", spec.Path+" was not written by machineadm: it is replaced")
			}
		}
	}
	certs := settings.PathsOf(m.Target.OS).Certs
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

// Removals are the changes that remove the empty directories.
func (t RegistryTree) Removals(m sdk.Machine) []*sdk.Change {
	var changes []*sdk.Change
	for _, directory := range t.directories {
		changes = append(changes, sdk.AbsentDirectory(m, directory))
	}
	return changes
}
