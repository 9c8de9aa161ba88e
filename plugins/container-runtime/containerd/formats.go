package main

import (
	"slices"
	"strings"
)

// inVersion2 says a setting of version 3 in version 2, which every containerd 2.x translates back. ok is false where it
// cannot. Source: configMigration in containerd's plugins/cri/images and plugins/cri/runtime.
func inVersion2(s setting) (path []string, value any, ok bool) {
	if len(s.path) < 3 || s.path[0] != "plugins" {
		return s.path, s.value, true
	}
	rest := s.path[2:]
	below := func(keys ...string) ([]string, any, bool) {
		return append([]string{"plugins", criPlugin}, keys...), s.value, true
	}
	switch s.path[1] {
	case runtimePlugin:
		if slices.Equal(rest, []string{"cni", "bin_dirs"}) {
			list := texts(s.value)
			if len(list) != 1 {
				return nil, nil, false
			}
			return []string{"plugins", criPlugin, "cni", "bin_dir"}, list[0], true
		}
		return below(rest...)
	case imagesPlugin:
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
	return s.path, s.value, true // a plugin by its own name stands in every version
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

// inDump is where `config dump` prints a setting: it always speaks the newest version of its daemon, and in 4 the
// servers have become plugins. Source: serviceMigrate in containerd's cmd/containerd/server/config.
func inDump(path []string, format int64) []string {
	if format < 4 || len(path) != 2 {
		return path
	}
	plugin := func(id, key string) []string { return []string{"plugins", "io.containerd." + id, key} }
	switch {
	case path[0] == "grpc" && strings.HasPrefix(path[1], "tcp_"):
		return plugin("server.v1.grpc-tcp", strings.TrimPrefix(path[1], "tcp_"))
	case path[0] == "metrics" && path[1] == "grpc_histogram":
		return plugin("metrics.v1.grpc-prometheus", path[1])
	case path[0] == "debug" && !slices.Contains([]string{"address", "uid", "gid"}, path[1]):
		return path
	case slices.Contains([]string{"grpc", "ttrpc", "debug", "metrics"}, path[0]):
		return plugin("server.v1."+path[0], path[1])
	}
	return path
}
