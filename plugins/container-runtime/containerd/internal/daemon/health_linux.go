package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/machineadm/machineadm/internal/cri"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/layout"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/settings"
	"github.com/machineadm/machineadm/plugins/container-runtime/containerd/internal/tomledit"
	"github.com/machineadm/machineadm/sdk"
)

// healthy asks the daemon what the kubelet will ask it. With the old configuration in place it asks no more; with the new
// one, also whether the daemon has it.
func (k Checker) Healthy(ctx context.Context, m sdk.Machine, _ sdk.Progress) error {
	socket := socketOf(m, k.C)
	client, err := cri.Dial(ctx, func(ctx context.Context) (net.Conn, error) { return m.FS.Dial(ctx, socket) })
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // a connection that was only read
	version, err := client.Version(ctx)
	if err != nil {
		return explained(err)
	}
	running, err := settings.ParseRelease(version.Version)
	if err != nil || version.Runtime != "containerd" {
		return fmt.Errorf("%s answers on the socket of containerd", version.Runtime)
	}
	status, err := client.Status(ctx, true)
	if err != nil {
		return explained(err)
	}
	if !status.RuntimeReady.Met {
		return fmt.Errorf("it says that it is not ready to run containers: %s", status.RuntimeReady.Reason)
	}
	if !k.inPlace(m) {
		return nil
	}
	if running.Minor != k.Installation.Release.Minor {
		return sdk.Final(fmt.Errorf("containerd %s runs, not %s", running, k.Installation.Release))
	}
	text, ok := status.Info.Reveal("config")
	if !ok {
		return nil
	}
	return k.shown(text)
}

// explained says what an operator can make of a daemon without CRI. It listens only when all its plugins are loaded, so that
// waiting brings no more.
func explained(err error) error {
	if errors.Is(err, cri.ErrNotServed) {
		return sdk.Final(fmt.Errorf("it runs without the Container Runtime Interface; see \"failed to load plugin\" in journalctl -u %s: %w", settings.Unit, err))
	}
	return err
}

// inPlace says whether the files are the new ones.
func (k Checker) inPlace(m sdk.Machine) bool {
	specs := []sdk.FileSpec{k.C.Main}
	if k.C.DropIn != nil {
		specs = append(specs, *k.C.DropIn)
	}
	for _, spec := range specs {
		text, err := m.FS.ReadFile(spec.Path)
		if err != nil || !bytes.Equal(text, spec.Content) {
			return false
		}
	}
	return true
}

// socketOf is where the daemon listens by the files that are there now.
func socketOf(m sdk.Machine, c layout.Configuration) string {
	files := []string{c.Main.Path}
	if c.DropIn != nil {
		files = append(files, c.DropIn.Path)
	}
	socket := defaultSocket
	for _, file := range files {
		text, err := m.FS.ReadFile(file)
		if err != nil {
			continue // then the daemon has the default, or does not run
		}
		d, err := tomledit.Parse(text)
		if err != nil {
			continue
		}
		for _, at := range [][]string{{"grpc", "address"}, {"plugins", "io.containerd.server.v1.grpc", "address"}} {
			if value, _ := d.Get(at...); value != nil && value != "" {
				socket, _ = value.(string)
			}
		}
	}
	return socket
}

// shown compares what the status carries of the configuration. Names and depth differ from the file's; what is not there
// is not judged.
func (k Checker) shown(text string) error {
	config := carried(text)
	for _, s := range k.C.Settings {
		at := inStatus(s.Path)
		if at == nil {
			continue
		}
		now, ok := lookup(config, at)
		if ok && fmt.Sprint(now) != fmt.Sprint(settings.General(s.Value)) {
			return fmt.Errorf("it does not have the value of %s", s.Origin())
		}
	}
	return nil
}

// carried is empty for what is no JSON: what a status carries, and how, is the daemon's own affair.
func carried(text string) map[string]any {
	var config map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&config); err != nil {
		return map[string]any{}
	}
	return config
}

// inStatus is where CRI's verbose status of containerd carries a setting; nil where it does not.
func inStatus(path []string) []string {
	if len(path) < 3 || path[0] != "plugins" || path[1] != settings.CRIPlugin && path[1] != settings.RuntimePlugin {
		return nil
	}
	rest := path[2:]
	switch strings.Join(rest, ".") {
	case "sandbox_image":
		return []string{"sandboxImage"}
	case "max_concurrent_downloads":
		return []string{"maxConcurrentDownloads"}
	case "registry.config_path":
		return []string{"registry", "configPath"}
	case "containerd.snapshotter":
		return rest
	case "containerd.default_runtime_name":
		return []string{"containerd", "defaultRuntimeName"}
	case "cni.conf_dir":
		return []string{"cni", "confDir"}
	case "cni.bin_dir":
		if path[1] == settings.CRIPlugin { // 2.x makes a list of it
			return []string{"cni", "binDir"}
		}
		return nil
	case "enable_cdi":
		return []string{"enableCDI"}
	}
	if len(rest) == 5 && rest[0] == "containerd" && rest[1] == "runtimes" && rest[3] == "options" {
		return rest
	}
	if len(rest) == 4 && rest[0] == "containerd" && rest[1] == "runtimes" && rest[3] == "runtime_type" {
		return []string{"containerd", "runtimes", rest[2], "runtimeType"}
	}
	return nil
}
