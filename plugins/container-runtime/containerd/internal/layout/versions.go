package layout

import (
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
)

// inVersion2 says a setting of version 3 in version 2, which every containerd 2.x translates back. ok is false where it
// cannot. Source: configMigration in containerd's plugins/cri/images and plugins/cri/runtime.
func inVersion2(s settings.Setting) (path []string, value any, ok bool) {
	if len(s.Path) < 3 || s.Path[0] != "plugins" {
		return s.Path, s.Value, true
	}
	rest := s.Path[2:]
	below := func(keys ...string) ([]string, any, bool) {
		return append([]string{"plugins", settings.CRIPlugin}, keys...), s.Value, true
	}
	switch s.Path[1] {
	case settings.RuntimePlugin:
		if slices.Equal(rest, []string{"cni", "bin_dirs"}) {
			list := texts(s.Value)
			if len(list) != 1 {
				return nil, nil, false
			}
			return []string{"plugins", settings.CRIPlugin, "cni", "bin_dir"}, list[0], true
		}
		return below(rest...)
	case settings.ImagesPlugin:
		switch {
		case slices.Equal(rest, []string{"pinned_images", "sandbox"}):
			return below("sandbox_image")
		case slices.Contains([]string{"snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers"}, rest[0]):
			return below(append([]string{"containerd"}, rest...)...)
		case slices.Contains([]string{
			"registry", "image_decryption", "max_concurrent_downloads", "image_pull_progress_timeout",
			"image_pull_with_sync_fs", "stats_collect_period",
		}, rest[0]):
			return below(rest...)
		}
	}
	return s.Path, s.Value, true // a plugin by its own name stands in every version
}

func texts(value any) []string {
	if list, ok := value.([]string); ok {
		return list
	}
	var list []string
	items, _ := value.([]any)
	for _, item := range items {
		text, _ := item.(string)
		list = append(list, text)
	}
	return list
}
