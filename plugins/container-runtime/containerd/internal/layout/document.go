package layout

import (
	"errors"
	"fmt"
	"io/fs"

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

func readMain(m sdk.Machine, config string, r settings.Release) (mainDocument, error) {
	d := mainDocument{path: config, mode: 0o644}
	text, err := m.FS.ReadFile(config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return d, err
	default:
		info, err := m.FS.Stat(config)
		if err != nil {
			return d, err
		}
		d.mode = info.Mode.Perm()
	}
	if d.Document, err = tomledit.Parse(text); err != nil {
		return d, edited(config, err)
	}
	if d.theirs, err = tomledit.Parse(text); err != nil {
		return d, edited(config, err)
	}
	for _, o := range d.theirs.Owned() {
		if o.Changed || !d.theirs.Has(o.Path...) || o.Table && len(d.theirs.Keys(o.Path...)) > 0 {
			continue
		}
		if err := d.theirs.Delete(o.Path...); err != nil {
			return d, edited(config, err)
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

func versionOf(d *tomledit.Document) int64 {
	value, _ := d.Get("version")
	version, _ := value.(int64)
	return version
}

// edited says where a fault of a configuration is.
func edited(path string, err error) error {
	fault, ok := errors.AsType[*tomledit.Error](err)
	if !ok {
		return err
	}
	return sdk.Precondition(path+": "+fault.Error(), "correct the file, then run again")
}

func ImportsOf(d *tomledit.Document, file string) ([]string, error) {
	value, ok := d.Get("imports")
	if !ok {
		return nil, nil
	}
	items, isList := value.([]any)
	var list []string
	for _, item := range items {
		text, isText := item.(string)
		isList = isList && isText
		list = append(list, text)
	}
	if !isList {
		return nil, sdk.Precondition(file+": imports is not a list of file names", "correct the file, then run again")
	}
	return list, nil
}
