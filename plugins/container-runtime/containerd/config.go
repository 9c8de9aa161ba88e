package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// configuration is what the daemon shall read.
type configuration struct {
	main   sdk.FileSpec
	dropIn *sdk.FileSpec // nil where the main file holds everything
	// settings are all that the files set, in the format of the daemon's release: the wanted and what they need beside them.
	settings []setting
	warnings []sdk.Warning
}

// mainDocument is the main file as it is.
type mainDocument struct {
	*tomledit.Document
	// theirs is the document without what an earlier run added.
	theirs  *tomledit.Document
	path    string
	mode    fs.FileMode
	version int64
}

// configure makes the configuration from the present one. It changes nothing.
func configure(m sdk.Machine, i installation, p present, settings []setting) (configuration, error) {
	settings = plain(settings)
	if err := registryConflict(p.main, settings, i); err != nil {
		return configuration{}, err
	}
	c := configuration{}
	if err := c.enableCRI(p.main); err != nil {
		return c, err
	}
	if i.release.major() == 1 {
		return c, edited(p.main.path, c.inMain(m, p, i, settings))
	}
	return c, edited(p.main.path, c.inDropIn(m, p, i, settings))
}

func readMain(m sdk.Machine, i installation) (mainDocument, error) {
	d := mainDocument{path: i.config, mode: 0o644}
	text, err := m.FS.ReadFile(i.config)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return d, err
	default:
		info, err := m.FS.Stat(i.config)
		if err != nil {
			return d, err
		}
		d.mode = info.Mode.Perm()
	}
	if d.Document, err = tomledit.Parse(text); err != nil {
		return d, edited(i.config, err)
	}
	if d.theirs, err = tomledit.Parse(text); err != nil {
		return d, edited(i.config, err)
	}
	for _, o := range d.theirs.Owned() {
		if o.Changed || !d.theirs.Has(o.Path...) || o.Table && len(d.theirs.Keys(o.Path...)) > 0 {
			continue
		}
		if err := d.theirs.Delete(o.Path...); err != nil {
			return d, edited(i.config, err)
		}
	}
	d.version = versionOf(d.Document)
	if highest := i.release.format(); versionOf(d.theirs) > int64(highest) {
		return d, sdk.Precondition(fmt.Sprintf("%s is of format version %d, and containerd %s reads none above %d",
			i.config, versionOf(d.theirs), i.release, highest),
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

// plain divides tables into their values, so that every value has a place of its own. Of two for one place the last
// counts.
func plain(settings []setting) []setting {
	all := leaves(settings)
	return slices.DeleteFunc(slices.Clone(all), func(s setting) bool {
		last := s
		for _, other := range all {
			if slices.Equal(other.path, s.path) {
				last = other
			}
		}
		return last.field != s.field
	})
}

func leaves(settings []setting) []setting {
	var all []setting
	for _, s := range settings {
		table, ok := s.value.(map[string]any)
		if !ok || len(table) == 0 {
			all = append(all, s)
			continue
		}
		for _, key := range sortedKeys(table) {
			part := s
			part.path, part.value = append(slices.Clone(s.path), key), table[key]
			all = append(all, leaves([]setting{part})...)
		}
	}
	return all
}

// enableCRI takes the CRI plugin off the list of those that are turned off, where Docker's package puts it.
func (c *configuration) enableCRI(d mainDocument) error {
	listed, _ := d.Get("disabled_plugins")
	list, _ := listed.([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(name any) bool {
		return slices.Contains([]any{"cri", criPlugin, imagesPlugin, runtimePlugin}, name)
	})
	if len(kept) == len(list) {
		return nil
	}
	c.warnings = append(c.warnings, sdk.Warning{
		Message: d.path + " turns the Container Runtime Interface off (disabled_plugins), which the kubelet needs: it is turned on",
	})
	return d.Set([]string{"disabled_plugins"}, kept)
}

// registryConflict refuses a configuration with which the daemon would run without CRI: the two ways to describe
// registries exclude each other. Source: ValidateRegistryConfig in containerd's pkg/cri/config.
func registryConflict(d mainDocument, settings []setting, i installation) error {
	usesTree := slices.ContainsFunc(settings, func(s setting) bool {
		return slices.Equal(s.path[max(0, len(s.path)-2):], []string{"registry", "config_path"}) && s.value != ""
	})
	if !usesTree {
		return nil
	}
	var keys []string
	for _, plugin := range []string{criPlugin, imagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		for _, host := range d.theirs.Keys(append(at, "mirrors")...) {
			keys = append(keys, dotted(append(at, "mirrors", host)))
		}
		for _, host := range d.theirs.Keys(append(at, "configs")...) {
			if tls := append(slices.Clone(at), "configs", host, "tls"); d.theirs.Has(tls...) {
				keys = append(keys, dotted(tls))
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return sdk.At(sdk.Precondition(d.path+" describes registries in the old way, which excludes that of spec.registries: "+strings.Join(keys, ", "),
		"move what they say to spec.registries and remove these tables from "+d.path+": with both, containerd "+
			i.release.String()+" starts without the Container Runtime Interface"), "spec.registries")
}

func (c *configuration) mainSpec(d mainDocument, secret bool) {
	mode := d.mode
	if secret {
		mode = 0o600
	}
	c.main = sdk.FileSpec{
		Path: d.path, Content: d.Bytes(), Mode: mode, Sensitive: secret || holdsCredentials(d.Document), Part: &sdk.Part{Name: "machineadm", Content: []byte{}},
	}
}

// holdsCredentials says whether other people keep credentials in the file: its difference is then not for showing.
func holdsCredentials(d *tomledit.Document) bool {
	for _, plugin := range []string{criPlugin, imagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		if len(d.Keys(append(at, "auths")...)) > 0 || len(d.Keys(append(at, "headers")...)) > 0 {
			return true
		}
		for _, host := range d.Keys(append(at, "configs")...) {
			if d.Has(append(at, "configs", host, "auth")...) {
				return true
			}
		}
	}
	return false
}

func anySecret(settings []setting) bool {
	return slices.ContainsFunc(settings, func(s setting) bool { return s.secret })
}
