package layout

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// inMain writes the settings into the main file: a file that containerd 1.x imports replaces whole tables of plugins.
func (c *Configuration) inMain(m sdk.Machine, p present, r settings.Release, desired []settings.Setting) error {
	d := p.main
	if err := toVersion2(d); err != nil {
		return err
	}
	desired = ordered(completeRuntimes(d.theirs, desired))
	if err := p.replaced(r, desired); err != nil {
		return err
	}
	if err := p.overridden(r, desired); err != nil {
		return err
	}
	if err := c.withdraw(d, desired, "version", "disabled_plugins", "imports"); err != nil {
		return err
	}
	if err := setImports(d, p.imports); err != nil {
		return err
	}
	for _, s := range desired {
		if err := d.Set(s.Path, s.Value); err != nil {
			return err
		}
	}
	c.Settings = desired
	c.mainSpec(d, anySecret(desired))
	// The drop-in of a containerd 2.x that was here before: 1.7 would not start with it.
	if _, err := m.FS.Lstat(settings.PathsOf(m.Target.OS).DropIn); err == nil {
		c.DropIn = &sdk.FileSpec{Path: settings.PathsOf(m.Target.OS).DropIn, Content: []byte(unusedDropIn), Mode: 0o644}
	}
	return nil
}

// unusedDropIn is the drop-in on containerd 1.x, after a downgrade.
const unusedDropIn = dropInHeader + "# containerd 1.x is configured in the main file.\n"

// toVersion2 makes a file one of version 2, when it says the same in both.
func toVersion2(d mainDocument) error {
	if d.version == 2 {
		return nil
	}
	old := slices.DeleteFunc(d.theirs.Keys("plugins"), func(name string) bool { return strings.Contains(name, ".") })
	for _, list := range []string{"disabled_plugins", "required_plugins"} {
		value, _ := d.Get(list)
		names, _ := value.([]any)
		for _, name := range names {
			if text, ok := name.(string); ok && !strings.Contains(text, ".") {
				old = append(old, text)
			}
		}
	}
	if len(old) > 0 {
		return sdk.Precondition(d.path+" is of format version 1 and names plugins in its way: "+strings.Join(old, ", "),
			"write the file in version 2 (version = 2, and plugins by their full names such as "+settings.CRIPlugin+"), or move it away")
	}
	return d.Set([]string{"version"}, int64(2))
}

// ordered puts what is near the top first, so that a new file reads from the outside to the inside.
func ordered(desired []settings.Setting) []settings.Setting {
	return slices.SortedStableFunc(slices.Values(desired), func(a, b settings.Setting) int {
		return cmp.Or(cmp.Compare(len(a.Path), len(b.Path)), slices.Compare(a.Path, b.Path))
	})
}

// completeRuntimes adds what containerd 1.x forgets as soon as a file says anything about runtimes: the type of each, and
// the default one.
func completeRuntimes(theirs *tomledit.Document, desired []settings.Setting) []settings.Setting {
	at := []string{"plugins", settings.CRIPlugin, "containerd"}
	runtimes := append(slices.Clone(at), "runtimes")
	touched := map[string]string{} // runtime to field
	typed := map[string]bool{}
	standard, field := "runc", ""
	if name, _ := theirs.Get(append(slices.Clone(at), "default_runtime_name")...); name != nil {
		standard, _ = name.(string)
	}
	for _, s := range desired {
		switch {
		case slices.Equal(s.Path, append(slices.Clone(at), "default_runtime_name")):
			standard, _ = s.Value.(string)
			field = s.Field
		case len(s.Path) > len(runtimes) && slices.Equal(s.Path[:len(runtimes)], runtimes):
			name := s.Path[len(runtimes)]
			if _, ok := touched[name]; !ok {
				touched[name] = s.Field
			}
			typed[name] = typed[name] || s.Path[len(s.Path)-1] == "runtime_type"
		}
	}
	if len(touched) == 0 && field == "" {
		return desired
	}
	if _, ok := touched[standard]; !ok && (standard == "runc" || standard == "crun") {
		touched[standard] = field
	}
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		place := append(slices.Clone(runtimes), name, "runtime_type")
		if has, _ := theirs.Get(place...); typed[name] || has != nil && has != "" {
			continue
		}
		desired = append(desired, settings.Setting{Path: place, Value: "io.containerd.runc.v2", Field: touched[name]})
	}
	return desired
}

// withdraw takes away what an earlier run added and nobody wants any more. What is kept at the top is named.
func (c *Configuration) withdraw(d mainDocument, desired []settings.Setting, kept ...string) error {
	wanted := func(path []string) bool {
		if len(path) == 1 && slices.Contains(kept, path[0]) {
			return true
		}
		return slices.ContainsFunc(desired, func(s settings.Setting) bool { return slices.Equal(s.Path, path) })
	}
	var left []string
	for _, o := range d.Owned() {
		switch {
		case wanted(o.Path) || !d.Has(o.Path...) || o.Table && len(d.Keys(o.Path...)) > 0:
		case o.Changed:
			left = append(left, settings.Dotted(o.Path))
		default:
			if err := d.Delete(o.Path...); err != nil {
				return err
			}
		}
	}
	if len(left) > 0 {
		c.Warnings = append(c.Warnings, sdk.Warning{Message: fmt.Sprintf(
			"%s: no longer in the document; the value of an earlier run stays: %s", d.path, strings.Join(left, ", "))})
	}
	return nil
}
