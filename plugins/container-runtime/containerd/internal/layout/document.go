// Package layout determines which files of which containerd release hold the settings of a document: the main file, the
// drop-in, the tree of registries, the drop-in of the unit and base specifications. It reads the current
// files and renders the desired ones.
package layout

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// mainDocument is the main file as it is.
type mainDocument struct {
	*tomledit.Document
	// theirs is the document without what an earlier run added.
	theirs  *tomledit.Document
	path    string
	mode    fs.FileMode
	version int64
}

// InCRI returns the paths of keys in each table that CRI has in some version.
func InCRI(keys ...string) [][]string {
	var all [][]string
	for _, plugin := range []string{settings.CRIPlugin, settings.ImagesPlugin, settings.RuntimePlugin} {
		all = append(all, append([]string{"plugins", plugin}, keys...))
	}
	return all
}

func below(path []string, keys ...string) []string { return slices.Concat(path, keys) }

func versionOf(d *tomledit.Document) int64 {
	value, _ := d.Get("version")
	version, _ := value.(int64)
	return version
}

// inFile makes an error of the editor a Precondition that names the file.
func inFile(path string, err error) error {
	fault, ok := errors.AsType[*tomledit.Error](err)
	if !ok {
		return err
	}
	return sdk.Precondition(path+": "+fault.Error(), "correct the file, then run again")
}

func readMain(m sdk.Machine, config string, r settings.Release) (mainDocument, error) {
	d := mainDocument{path: config, mode: 0o644}
	text, err := m.FS.ReadFile(config)
	if err == nil {
		info, failure := m.FS.Stat(config)
		d.mode, err = info.Mode.Perm(), failure
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return d, err
	}
	if d.Document, err = tomledit.Parse(text); err != nil {
		return d, inFile(config, err)
	}
	if d.theirs, err = tomledit.Parse(text); err != nil {
		return d, inFile(config, err)
	}
	for _, o := range d.theirs.Owned() {
		if o.Changed || !d.theirs.Has(o.Path...) {
			continue
		}
		if err := d.theirs.Delete(o.Path...); err != nil {
			return d, inFile(config, err)
		}
	}
	d.version = versionOf(d.Document)
	if highest := r.Format(); versionOf(d.theirs) > int64(highest) {
		return d, sdk.Precondition(fmt.Sprintf("%s is of format version %d, and containerd %s reads none above %d",
			config, versionOf(d.theirs), r, highest),
			"move the file away, or bring it to version "+fmt.Sprint(highest)+": it comes from a newer containerd")
	}
	return d, nil
}
