package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/machineadm/machineadm/contract/v1alpha1"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/sdk"
)

// merge applies a merge patch to a table. Source: RFC 7396.
func merge(into, patch map[string]any) {
	for key, value := range patch {
		table, ok := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case ok:
			below, isTable := into[key].(map[string]any)
			if !isTable {
				below = map[string]any{}
			}
			merge(below, table)
			into[key] = below
		default:
			into[key] = value
		}
	}
}

// baseSpec is the specification that the containers of a runtime start from: the daemon's default, merged with the patch,
// with these limits and no others. Without a base specification containerd removes the default's limits, so that one
// which stayed here would apply to every container.
func baseSpec(defaults []byte, limits map[string]v1alpha1.Rlimit, patch map[string]any) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(defaults))
	decoder.UseNumber()
	var spec map[string]any
	if err := decoder.Decode(&spec); err != nil { // never %w: it may quote
		return nil, errors.New("the default specification of containers is not JSON")
	}
	merge(spec, patch)
	process, ok := spec["process"].(map[string]any)
	if version, _ := spec["ociVersion"].(string); version == "" || !ok {
		return nil, errors.New("the default specification of containers is not of the OCI")
	}
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(limits)) {
		list = append(list, map[string]any{"type": name, "soft": limits[name].Soft, "hard": limits[name].Hard})
	}
	process["rlimits"] = list
	text, err := json.MarshalIndent(spec, "", "  ")
	if err != nil {
		return nil, errors.New("the default specification of containers cannot be written")
	}
	return append(text, '\n'), nil
}

// BaseSpecs are the base specifications of the runtimes, made from the daemon's default. An image cannot be asked for that:
// there a setting that refers to one is left for first boot.
func BaseSpecs(
	m sdk.Machine, want settings.Desired, r settings.Release, desired []settings.Setting, result *sdk.Plan, ask func() ([]byte, error),
) ([]sdk.FileSpec, []settings.Setting, error) {
	var files []sdk.FileSpec
	var defaults []byte
	for _, h := range want.Runtimes {
		if !h.HasBaseSpec() {
			continue
		}
		path := settings.PathsOf(want.OS).BaseSpec(h.Name)
		if m.Offline() {
			desired = slices.DeleteFunc(desired, func(s settings.Setting) bool {
				return s.Path[len(s.Path)-1] == "base_runtime_spec" && s.Value == path
			})
			result.Warn(string(h.Field+".baseSpec"), "it is made of containerd's own default, which is known at first boot: until then it is not in effect")
			continue
		}
		if defaults == nil {
			var err error
			if defaults, err = ask(); err != nil {
				return nil, nil, err
			}
		}
		text, err := baseSpec(defaults, h.Rlimits, h.SpecPatch)
		if err != nil {
			return nil, nil, sdk.Precondition("ctr oci spec: "+err.Error(), "install the ctr that comes with containerd "+r.String())
		}
		files = append(files, file(path, text, false))
	}
	return files, desired, nil
}
