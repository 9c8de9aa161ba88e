package layout

import (
	"slices"
	"strings"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// Configure renders the configuration that has these settings and everything that is there. It changes nothing.
func Configure(m sdk.Machine, r settings.Release, p Current, desired []settings.Setting) (Configuration, error) {
	c := Configuration{}
	if err := registryConflict(p.main, desired, r); err != nil {
		return c, err
	}
	if err := c.enableCRI(p.main); err != nil {
		return c, err
	}
	write := c.inDropIn
	if r.Major == 1 {
		write = c.inMain
	}
	err := write(m, p, r, desired)
	return c, inFile(p.main.path, err)
}

// enableCRI deletes the CRI plugins from disabled_plugins, where Docker's package lists one.
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

// registryConflict refuses a configuration with which the daemon runs without CRI: the two ways to describe registries
// exclude each other. Source: ValidateRegistryConfig in containerd's pkg/cri/config.
func registryConflict(d mainDocument, desired []settings.Setting, r settings.Release) error {
	if !slices.ContainsFunc(desired, func(s settings.Setting) bool {
		return slices.Equal(s.Path[max(0, len(s.Path)-2):], []string{"registry", "config_path"}) && s.Value != ""
	}) {
		return nil
	}
	var keys []string
	for _, at := range InCRI("registry") {
		for _, host := range d.theirs.Keys(below(at, "mirrors")...) {
			keys = append(keys, settings.Dotted(below(at, "mirrors", host)))
		}
		for _, host := range d.theirs.Keys(below(at, "configs")...) {
			if tls := below(at, "configs", host, "tls"); d.theirs.Has(tls...) {
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
