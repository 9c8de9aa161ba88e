package layout

import (
	"maps"
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// configure makes the configuration from the present one. It changes nothing.
func Configure(m sdk.Machine, r settings.Release, p present, desired []settings.Setting) (Configuration, error) {
	desired = plain(desired)
	if err := registryConflict(p.main, desired, r); err != nil {
		return Configuration{}, err
	}
	c := Configuration{}
	if err := c.enableCRI(p.main); err != nil {
		return c, err
	}
	if r.Major == 1 {
		return c, edited(p.main.path, c.inMain(m, p, r, desired))
	}
	return c, edited(p.main.path, c.inDropIn(m, p, r, desired))
}

// plain divides tables into their values, so that every value has a place of its own. Of two for one place the last
// counts.
func plain(desired []settings.Setting) []settings.Setting {
	all := leaves(desired)
	return slices.DeleteFunc(slices.Clone(all), func(s settings.Setting) bool {
		last := s
		for _, other := range all {
			if slices.Equal(other.Path, s.Path) {
				last = other
			}
		}
		return last.Field != s.Field
	})
}

func leaves(desired []settings.Setting) []settings.Setting {
	var all []settings.Setting
	for _, s := range desired {
		table, ok := s.Value.(map[string]any)
		if !ok || len(table) == 0 {
			all = append(all, s)
			continue
		}
		for _, key := range slices.Sorted(maps.Keys(table)) {
			part := s
			part.Path, part.Value = append(slices.Clone(s.Path), key), table[key]
			all = append(all, leaves([]settings.Setting{part})...)
		}
	}
	return all
}

// enableCRI takes the CRI plugin off the list of those that are turned off, where Docker's package puts it.
func (c *Configuration) enableCRI(d mainDocument) error {
	listed, _ := d.Get("disabled_plugins")
	list, _ := listed.([]any)
	kept := slices.DeleteFunc(slices.Clone(list), func(name any) bool {
		return slices.Contains([]any{"cri", settings.CRIPlugin, settings.ImagesPlugin, settings.RuntimePlugin}, name)
	})
	if len(kept) == len(list) {
		return nil
	}
	c.Warnings = append(c.Warnings, sdk.Warning{
		Message: d.path + " turns the Container Runtime Interface off (disabled_plugins), which the kubelet needs: it is turned on",
	})
	return d.Set([]string{"disabled_plugins"}, kept)
}

// registryConflict refuses a configuration with which the daemon would run without CRI: the two ways to describe
// registries exclude each other. Source: ValidateRegistryConfig in containerd's pkg/cri/config.
func registryConflict(d mainDocument, desired []settings.Setting, r settings.Release) error {
	usesTree := slices.ContainsFunc(desired, func(s settings.Setting) bool {
		return slices.Equal(s.Path[max(0, len(s.Path)-2):], []string{"registry", "config_path"}) && s.Value != ""
	})
	if !usesTree {
		return nil
	}
	var keys []string
	for _, plugin := range []string{settings.CRIPlugin, settings.ImagesPlugin} {
		at := []string{"plugins", plugin, "registry"}
		for _, host := range d.theirs.Keys(append(at, "mirrors")...) {
			keys = append(keys, settings.Dotted(append(at, "mirrors", host)))
		}
		for _, host := range d.theirs.Keys(append(at, "configs")...) {
			if tls := append(slices.Clone(at), "configs", host, "tls"); d.theirs.Has(tls...) {
				keys = append(keys, settings.Dotted(tls))
			}
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return sdk.At(sdk.Precondition(d.path+" describes registries in the old way, which excludes that of spec.registries: "+strings.Join(keys, ", "),
		"move what they say to spec.registries and remove these tables from "+d.path+": with both, containerd "+
			r.String()+" starts without the Container Runtime Interface"), "spec.registries")
}
