package layout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

const (
	dropInHeader = "# Written by machineadm, which replaces this file. Others go beside it, or into the main file.\n"
	// dropInFormat is the version that every containerd 2.x reads.
	dropInFormat = 3
)

// inDropIn writes the settings of containerd 2.x into a file of our own, which the main file imports. The last file wins,
// so the settings win over the main file.
func (c *Configuration) inDropIn(m sdk.Machine, p Current, r settings.Release, desired []settings.Setting) error {
	d := p.main
	c.Settings = withoutBinDir(d, desired)
	if err := p.overridden(r, c.Settings); err != nil {
		return err
	}
	// A drop-in cannot replace a value of the main file outside of plugins by a zero: containerd takes that for no value.
	over := slices.DeleteFunc(slices.Clone(c.Settings), func(s settings.Setting) bool {
		return s.Path[0] == "plugins" || !settings.IsZero(s.Value) || !d.theirs.Has(s.Path...)
	})
	others := slices.DeleteFunc(d.theirs.Keys(), func(key string) bool { return key == "imports" })
	if len(others) == 0 {
		if err := d.Set([]string{"version"}, int64(dropInFormat)); err != nil {
			return err
		}
	}
	if err := c.write(d, over, p.imports); err != nil {
		return err
	}
	text, err := renderDropIn(p, r, c.Settings)
	if err != nil {
		return err
	}
	c.setMain(d, false)
	dropIn := file(settings.PathsOf(m.Target.OS).DropIn, text, anySecret(desired))
	c.DropIn = &dropIn
	return nil
}

// withoutBinDir clears bin_dir, which a main file written before 2.1 may set: with it and bin_dirs, the Container Runtime
// Interface does not start.
func withoutBinDir(d mainDocument, desired []settings.Setting) []settings.Setting {
	cni := []string{"plugins", settings.RuntimePlugin, "cni"}
	old := below(cni, "bin_dir")
	at := slices.IndexFunc(desired, func(s settings.Setting) bool { return s.Is(below(cni, "bin_dirs")...) })
	if at < 0 || slices.ContainsFunc(desired, func(s settings.Setting) bool { return s.Is(old...) }) {
		return desired
	}
	if value, _ := d.theirs.Get(old...); value != nil && value != "" {
		return append(slices.Clone(desired), settings.Setting{Path: old, Value: "", Field: desired[at].Field})
	}
	return desired
}

// renderDropIn renders the settings as a file. Before 2.3, containerd translates all files or none, by the version of the
// last: below a drop-in of version 3, a main file of version 2 would lose its settings of CRI.
func renderDropIn(p Current, r settings.Release, desired []settings.Setting) ([]byte, error) {
	format := dropInFormat
	if !r.TranslatesEachFile() && slices.ContainsFunc(p.foreign(), func(l layer) bool {
		return versionOf(l.Document) == 2 && l.Has("plugins")
	}) {
		format = 2
	}
	tree := map[string]any{}
	for _, s := range desired {
		path, value := s.Path, s.Value
		if format == 2 {
			var ok bool
			if path, value, ok = inVersion2(s); !ok {
				return nil, sdk.Precondition(p.main.path+" or what it imports is of format version 2, in which "+s.Field+" cannot be said",
					"write that file in version 3, or install containerd 2.3 or later")
			}
		}
		put(tree, path, value)
	}
	text, err := toml.Marshal(tree)
	if err != nil {
		return nil, errors.New("render the drop-in of containerd") // never %w: it could quote a value
	}
	return fmt.Appendf(nil, "%sversion = %d\n\n%s", dropInHeader, format, text), nil
}

func put(tree map[string]any, path []string, value any) {
	for _, key := range path[:len(path)-1] {
		table, ok := tree[key].(map[string]any)
		if !ok {
			table = map[string]any{}
			tree[key] = table
		}
		tree = table
	}
	tree[path[len(path)-1]] = value
}
