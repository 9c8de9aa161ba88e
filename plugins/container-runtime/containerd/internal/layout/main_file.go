package layout

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// unusedDropIn is the content of the drop-in after a downgrade to containerd 1.x.
const unusedDropIn = dropInHeader + "# containerd 1.x is configured in the main file.\n"

// inMain writes the settings of containerd 1.x into the main file: a file that it imports replaces whole tables of
// plugins.
func (c *Configuration) inMain(m sdk.Machine, p Current, r settings.Release, desired []settings.Setting) error {
	d := p.main
	if err := toVersion2(d); err != nil {
		return err
	}
	c.Settings = completeRuntimes(d.theirs, desired)
	// Shorter paths first, so that a new file reads from the outside to the inside.
	slices.SortStableFunc(c.Settings, func(a, b settings.Setting) int {
		return cmp.Or(cmp.Compare(len(a.Path), len(b.Path)), slices.Compare(a.Path, b.Path))
	})
	if err := p.replaced(r, c.Settings); err != nil {
		return err
	}
	if err := p.overridden(r, c.Settings); err != nil {
		return err
	}
	if err := c.write(d, c.Settings, p.imports); err != nil {
		return err
	}
	c.setMain(d, anySecret(desired))
	// containerd 1.7 does not start with the drop-in of a containerd 2.x.
	path := settings.PathsOf(m.Target.OS).DropIn
	if _, err := m.FS.Lstat(path); err == nil {
		unused := file(path, []byte(unusedDropIn), false)
		c.DropIn = &unused
	}
	return nil
}

// toVersion2 sets the version of a file that means the same in versions 1 and 2.
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

// completeRuntimes adds what containerd 1.x drops as soon as a file sets anything of a runtime: the type of each, and the
// default runtime.
func completeRuntimes(theirs *tomledit.Document, desired []settings.Setting) []settings.Setting {
	at := []string{"plugins", settings.CRIPlugin, "containerd"}
	touched, typed := map[string]string{}, map[string]bool{} // the keys are runtimes, the values of touched are fields
	standard, field := "runc", ""
	if name, _ := theirs.Get(below(at, "default_runtime_name")...); name != nil {
		standard, _ = name.(string)
	}
	for _, s := range desired {
		if s.Is(below(at, "default_runtime_name")...) {
			standard, _ = s.Value.(string)
			field = s.Field
		} else if len(s.Path) > 4 && slices.Equal(s.Path[:4], below(at, "runtimes")) {
			name := s.Path[4]
			touched[name] = cmp.Or(touched[name], s.Field)
			typed[name] = typed[name] || s.Path[len(s.Path)-1] == "runtime_type"
		}
	}
	if len(touched) == 0 && field == "" {
		return slices.Clone(desired)
	}
	if standard == "runc" || standard == "crun" {
		touched[standard] = cmp.Or(touched[standard], field)
	}
	all := slices.Clone(desired)
	for _, name := range slices.Sorted(maps.Keys(touched)) {
		path := below(at, "runtimes", name, "runtime_type")
		if has, _ := theirs.Get(path...); !typed[name] && (has == nil || has == "") {
			all = append(all, settings.Setting{Path: path, Value: "io.containerd.runc.v2", Field: touched[name]})
		}
	}
	return all
}
