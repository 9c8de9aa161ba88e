package layout

import (
	"slices"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
)

// inVersion2 translates a setting of version 3 to version 2, which every containerd 2.x translates back. ok is false where
// version 2 cannot express it. Source: configMigration in containerd's plugins/cri/images and plugins/cri/runtime.
func inVersion2(s settings.Setting) (path []string, value any, ok bool) {
	if len(s.Path) < 3 || s.Path[0] != "plugins" {
		return s.Path, s.Value, true
	}
	rest := s.Path[2:]
	cri := []string{"plugins", settings.CRIPlugin}
	switch s.Path[1] {
	case settings.RuntimePlugin:
		if !slices.Equal(rest, []string{"cni", "bin_dirs"}) {
			return below(cri, rest...), s.Value, true
		}
		list, _ := settings.General(s.Value).([]any)
		if len(list) != 1 {
			return nil, nil, false
		}
		return below(cri, "cni", "bin_dir"), list[0], true
	case settings.ImagesPlugin:
		switch rest[0] {
		case "pinned_images":
			if len(rest) == 2 && rest[1] == "sandbox" {
				return below(cri, "sandbox_image"), s.Value, true
			}
		case "snapshotter", "disable_snapshot_annotations", "discard_unpacked_layers":
			return below(below(cri, "containerd"), rest...), s.Value, true
		case "registry", "image_decryption", "max_concurrent_downloads", "image_pull_progress_timeout", "image_pull_with_sync_fs", "stats_collect_period":
			return below(cri, rest...), s.Value, true
		}
	}
	return s.Path, s.Value, true // the table of any other plugin is the same in every version
}
