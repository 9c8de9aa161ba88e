package layout

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// emptiedDropIn is the unit's drop-in of an earlier version of the document, when this one wants none: an empty one takes
// effect with the same restart, and with the old one back if need be.
func EmptyDropIn(m sdk.Machine, want settings.Desired, files []sdk.FileSpec) ([]sdk.FileSpec, error) {
	path := settings.PathsOf(want.OS).UnitDropIn()
	if slices.ContainsFunc(files, func(spec sdk.FileSpec) bool { return spec.Path == path }) {
		return nil, nil
	}
	text, err := m.FS.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !managed(text) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []sdk.FileSpec{{Path: path, Content: []byte(header("systemd.exec(5)") + "# It asks for nothing now.\n"), Mode: 0o644}}, nil
}

// planLeftovers removes the files of our own directory that nothing refers to any more.
func Leftovers(m sdk.Machine, files []sdk.FileSpec, result *sdk.Plan) error {
	at := settings.PathsOf(m.Target.OS)
	for _, directory := range []string{at.Own, at.Trusted()} {
		names, err := listing(m, directory)
		if err != nil {
			return err
		}
		for _, name := range names {
			path := at.Join(directory, name)
			ours := path == at.Bundle() || path == at.Environment() || strings.HasPrefix(name, "base-") && strings.HasSuffix(name, ".json")
			if !ours || slices.ContainsFunc(files, func(spec sdk.FileSpec) bool { return spec.Path == path }) {
				continue
			}
			change, err := sdk.Absent(m, path)
			if err != nil {
				return err
			}
			result.Add(change)
		}
	}
	return nil
}
