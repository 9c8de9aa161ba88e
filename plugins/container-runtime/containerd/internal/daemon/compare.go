package daemon

import (
	"slices"
	"strings"
)

func lookup(tree map[string]any, path []string) (any, bool) {
	var here any = tree
	for _, key := range path {
		table, ok := here.(map[string]any)
		if !ok {
			return nil, false
		}
		if here, ok = table[key]; !ok {
			return nil, false
		}
	}
	return here, true
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
