package daemon

import (
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	"github.com/machineadm/machineadm/internal/cri"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings/settingstest"
	"github.com/machineadm/machineadm/sdk"
	"github.com/machineadm/machineadm/sdk/machinetest"
)

// TestHealthOfThisMachine: the daemon is asked where the configuration of the machine puts it, below its root.
func TestHealthOfThisMachine(t *testing.T) {
	t.Parallel()
	f := machinetest.New(t)
	k := Checker{Configuration: layout.Configuration{Main: sdk.FileSpec{Path: "/etc/containerd/config.toml"}}}
	require.ErrorIs(t, k.Healthy(t.Context(), f.Machine, nil), cri.ErrDown)

	f.WriteFiles(t, map[string]string{"/etc/containerd/config.toml": "[grpc]\naddress = '/run/x'\n"})
	require.NoError(t, os.Mkdir(filepath.Join(f.Root, "run"), 0o755))
	listener, err := net.Listen("unix", filepath.Join(f.Root, "run/x"))
	require.NoError(t, err)
	server := grpc.NewServer()                 // without CRI
	go func() { _ = server.Serve(listener) }() // until Stop
	t.Cleanup(server.Stop)
	err = k.Healthy(t.Context(), f.Machine, nil)
	require.ErrorIs(t, err, cri.ErrNotServed)
	require.ErrorContains(t, err, "journalctl -u containerd")
}

// TestStatusIsCompared: the configuration that the running daemon reports is compared with the document.
func TestStatusIsCompared(t *testing.T) {
	t.Parallel()
	k := Checker{Configuration: layout.Configuration{Settings: settingstest.Core(settings.Release{Major: 1, Minor: 7, Patch: 24})}}
	config := map[string]any{"containerd": map[string]any{"snapshotter": "native"}, "sandboxImage": "registry.example.com/pause:3.10"}
	show := func() error {
		text, err := json.Marshal(config)
		if err != nil {
			t.Fatal(err)
		}
		return k.shown(string(text))
	}
	if err := show(); err != nil {
		t.Error(err)
	}
	config["sandboxImage"] = "another"
	if err := show(); err == nil || !strings.Contains(err.Error(), "spec.sandboxImage") {
		t.Errorf("got %v", err)
	}
}
