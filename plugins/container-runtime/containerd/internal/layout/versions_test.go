package layout

import (
	"testing"

	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings/settingstest"
)

// TestVersion2: every setting of version 3 that this plugin makes has its place in version 2.
func TestVersion2(t *testing.T) {
	t.Parallel()
	for _, s := range settingstest.Core(settings.Release{Major: 2, Minor: 1, Patch: 9}) {
		if path, _, ok := inVersion2(s); !ok || len(path) > 2 && path[1] != settings.CRIPlugin {
			t.Errorf("%v becomes %v", s, path)
		}
	}
	if _, _, ok := inVersion2(settings.Setting{Path: []string{"plugins", settings.RuntimePlugin, "cni", "bin_dirs"}, Value: []string{"/a", "/b"}}); ok {
		t.Error("two directories became one")
	}
}
